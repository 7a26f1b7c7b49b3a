"""Logs as they come: prefixes, colours, encodings, rubbish, any length; secrets; a log of any text is answered."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.diagnostics import Report
from deployc.measure.doctor.log.document import document
from deployc.measure.doctor.log.judge import judge
from deployc.measure.doctor.log.lines import LONGEST, MOST, Line, lines
from deployc.measure.doctor.log.mask import hidden, secrets
from deployc.measure.doctor.log.reading import Reading, read
from deployc.measure.doctor.log.shown import shown_facts
from deployc.measure.doctor.log.table import table
from deployc.measure.doctor.log.window import HEAD, TAIL, Window, window
from deployc.views.log import log as view
from deployc.views.pages import Page

FAULT = "ValueError: No available memory for the cache blocks."
ENGINE = f"(EngineCore_DP0 pid=271) ERROR 11-20 10:02:31 [core.py:842] {FAULT}"


def of(data: bytes) -> Window:
    return window(io.BytesIO(data), "engine.log")


def only(text: str) -> Line:
    (line,) = lines(of(text.encode()))
    return line


BEFORE = [
    "",
    "vllm-1  | ",
    "vllm_server.1.x7f@host    | ".replace("@", "-"),
    "2025-11-20T10:02:31.123456789Z ",
    "2025-11-20T10:02:31.123456789+01:00 stderr F ",
    "Nov 20 10:02:31 gpu-host vllm[4711]: ",
    "Nov  2 10:02:31 gpu-host python3[4711]: ",
    "[pod/vllm-7d9/engine] ",
    "\x1b[36mvllm-1  | \x1b[0m",
    "vllm-1  | 2025-11-20T10:02:31.123Z ",
    "[2026-02-24T20:21:58Z] ",
    "> ",
    "> > ",
]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("process", ["(EngineCore pid=1) ", "(Worker_TP0 pid=12) ", "(VllmWorker rank=0 pid=9) ", ""])
@pytest.mark.parametrize(
    "level", ["ERROR 11-20 10:02:31 [core.py:842] ", "ERROR 11-20 10:02:31 engine.py:366] ", "ERROR: ", ""]
)
def test_what_stands_before_the_engines_words_is_taken_off(before: str, process: str, level: str) -> None:
    line = only(f"{before}\x1b[1;36m{process}\x1b[0;0m{level}{FAULT}\r\n")
    assert (line.text, line.level) == (FAULT, level[:5])
    assert line.process == process[1:].split(" ")[0]
    assert line.raw[line.start :] == line.text


def test_a_rank_before_a_traceback() -> None:
    assert only(f"[rank0]: {FAULT}").text == FAULT


def test_dockers_own_file_of_a_container() -> None:
    assert only(json.dumps({"log": f"{ENGINE}\n", "stream": "stderr", "time": "x"})).text == FAULT
    assert only('{"log": broken').text == '{"log": broken'


def test_steps_of_a_progress_bar_are_lines_of_one_number() -> None:
    found = lines(of(f"Loading:  50%\rLoading: 100%\r{ENGINE}\n".encode()))
    assert [line.number for line in found] == [1, 1, 1]
    assert found[-1].text == FAULT


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_shells_write(encoding: str) -> None:
    assert found(of(f"{ENGINE}\n".encode(encoding))) == ["DC301"]


def found(seen: Window) -> list[str]:
    return [one.failure.code for one in read(seen, table()).failures]


def test_a_long_log_is_read_at_both_ends_and_its_lines_are_counted() -> None:
    middle = b"INFO:     10.0.0.7:1 - GET /health HTTP/1.1 200 OK\n" * ((HEAD + TAIL) // 50 + 10_000)
    seen = of(b"vLLM API server version 0.11.2\n" + middle + f"{ENGINE}\n".encode())
    told = read(seen, table())
    assert not told.whole
    assert told.failures[0].at.line == middle.count(b"\n") + 2
    assert [fact.value for fact in told.facts if fact.name == "version"] == ["0.11.2"]
    assert len(seen.head) + len(seen.tail) < HEAD + TAIL + 2**19


def test_very_many_lines_and_very_long_ones_are_cut() -> None:
    told = of(b"a\n" * (3 * MOST) + ENGINE.encode())
    assert len(lines(told)) <= MOST + MOST // 10
    assert found(told) == ["DC301"]
    assert max(len(line.raw) for line in lines(of(b"x" * (LONGEST * 3)))) == LONGEST


def test_a_log_as_long_as_the_window_is_whole() -> None:
    for size in (0, 1, HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL):
        seen = of(b"x" * size)
        assert (seen.size, len(seen.head) + len(seen.tail), seen.tail) == (size, size, "")


SPELLED = [
    "non-default args: {'api_key': ['sesame-1', 'sesame-2'], 'port': 8000}",
    "non-default args: {'model': 'x', 'hf_token': 'sesame-1'}",
    "args: Namespace(host=None, port=8000, api_key='sesame-1', model='x')",
    "+ vllm serve x --api-key sesame-1 sesame-2 --port 8000",
    "+ vllm serve x --api-key=sesame-1",
    "headers: Authorization: Bearer sesame-1",
    "VLLM_API_KEY=sesame-1",
]


@pytest.mark.parametrize("line", SPELLED)
def test_a_secret_is_never_shown(line: str) -> None:
    assert "sesame" not in hidden(line)
    assert len(hidden(line)) == len(line)
    told = read(of(f"{line}\nRuntimeError: the key sesame-1 is odd\n{ENGINE}\n".encode()), table())
    assert "sesame" not in answer(told)


NOT_SECRET = [
    "non-default args: {'api_key': '***', 'max_tokens': 5, 'tokenizer': 'org/model'}",
    "usage: vllm serve [--api-key API_KEY [API_KEY ...]] [--lora-modules LORA_MODULES] [--hf-token [HF_TOKEN]]",
    "+ vllm serve org/model --api-key $VLLM_API_KEY",
    "a basic configuration, and the bearer authentication scheme",
    "args: Namespace(api_key=None, tokenizer='org/model')",
]


@pytest.mark.parametrize("line", NOT_SECRET)
def test_what_is_no_secret_is_not_taken_for_one(line: str) -> None:
    assert secrets(line) == set()


def test_ordinary_words_are_shown() -> None:
    line = "{'tokenizer': 'org/model', 'max_num_batched_tokens': 8192}, a basic configuration"
    assert hidden(line) == line


def answer(told: Reading) -> str:
    """All that is printed of it, both forms."""
    shown = {row.code: Page(row.code, "en", "summary", "", "", "", "fix", "") for row in table().failures}
    judged = judge(told, shown, {})
    report = Report(list(judged.diagnostics))
    made = document(judged, report)
    return view(made, report, shown_facts(told), []) + json.dumps(made, ensure_ascii=False, allow_nan=False)


PIECES = [
    "Value {", "max seq len (", "non-default args: {'api_key': ['", "Model architectures ", "(EngineCore pid=", "\x1b[",
    "Nov 20 10:02:31 h x[1]: ", "a | ", '{"log":"', "/dev/shm", "unrecognized arguments: --", "KV cache size: 9",
    "non-default args: {" * 3, "Traceback (most recent call last)", "ERROR 11-20 10:02:31 [a.py:1] ", "\r", "\n", "\0",
    "vLLM", "Application startup complete", "LoRA rank 99999999999 is greater than max_lora_rank ", "\ud83d\ude00",
    "Free memory on device (9/0 GiB) on startup is less than desired GPU memory utilization (0, 9 GiB)", "[" * 50,
    "positions=1.5", "estimated maximum model length is 1",
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=40))
def test_any_text_is_answered(pieces: list[str]) -> None:
    assert answer(read(of("".join(pieces).encode("utf-8", "replace")), table()))


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=400))
def test_any_bytes_are_answered(data: bytes) -> None:
    assert answer(read(of(data), table()))


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_over_and_over_is_answered(piece: str) -> None:
    text = (piece * (LONGEST // len(piece) + 1))[:LONGEST]
    assert answer(read(of(text.encode("utf-8", "replace")), table()))
