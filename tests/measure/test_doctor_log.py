"""`deployc doctor --log`: recorded logs and reported ones as golden answers; which failure is told, and when."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden

from deployc import pipeline
from deployc.cli.main import run
from deployc.data import pages
from deployc.measure.doctor.log.judge import Told, judge
from deployc.measure.doctor.log.reading import Reading, read
from deployc.measure.doctor.log.table import gone, table
from deployc.measure.doctor.log.window import Window
from deployc.rules.case import Case
from deployc.views.pages import read as page

Capture = pytest.CaptureFixture[str]
HERE = Path(__file__).resolve().parent
LOGS = HERE / "data" / "logs"
EXAMPLE = HERE.parent.parent / "examples" / "qwen2.5-7b-a100" / "deploy.yaml"
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))
TOLD = ["local-key-1f3b9", "team-key-77aa", "second-key-0x1", "hf_abcdefghijklmnopqrst"]
"""Secrets that the logs spell out."""
FAULT = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
START = "INFO 11-20 10:01:02 [api_server.py:1977] vLLM API server version 0.11.2"
PAGES = {
    code: page((pages() / f"{code}.md").read_text()) for code in {"DC502", *(row.code for row in table().failures)}
}
UP = "INFO:     Application startup complete."


def reading(*told: str) -> Reading:
    return read(Window("engine.log", 1, "\n".join(told)), table())


def judged(*told: str) -> Told:
    return judge(reading(*told), PAGES, gone())


def codes(*told: str) -> list[str]:
    return [found.code for found in judged(*told).diagnostics]


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_answered(name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LOGS)
    assert run(["doctor", "--log", f"{name}.log"]) == 0
    said = capsys.readouterr().out
    assert_golden(LOGS / f"{name}.txt", said)
    assert run(["doctor", "--log", f"{name}.log", "--json"]) == 0
    both = said + capsys.readouterr().out
    assert [secret for secret in TOLD if secret in both] == []


def test_beside_a_plan(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LOGS)
    args = ["doctor", "--log", "kv-length-0.11.log", "-f", os.path.relpath(EXAMPLE), "--offline"]
    assert run(args) == 0
    assert_golden(LOGS / "kv-length-0.11.beside.txt", capsys.readouterr().out)
    assert run([*args, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    against = {one["name"]: one["inside"] for one in told["against"]}
    assert against["weights_gib"]
    assert against["kv_needed_gib"]
    assert not against["kv_cache_gib"]
    assert {one["name"]: one["file"] for one in told["settings"]}["engine.version"] == "0.33.0"
    assert (told["failure"]["code"], told["failure"]["line"], told["outcome"]) == ("DC302", 13, "failed")


def planned() -> Case:
    made = pipeline.compile(EXAMPLE, offline=True)
    assert made.deploy
    assert made.facts
    assert made.choices
    assert made.prediction
    return Case(made.deploy, made.facts, made.choices, made.prediction)


def beside(case: Case, said: frozenset[str], *told: str) -> Told:
    return judge(reading(*told), PAGES, gone(), case, said)


def test_whether_the_plan_says_the_same_is_told() -> None:
    case = planned()
    assert "says the same of this file" in beside(case, frozenset({"DC301"}), START, FAULT).diagnostics[0].detail
    assert "does not say this" in beside(case, frozenset({"DC302"}), START, FAULT).diagnostics[0].detail
    assert "plan" not in judged(START, FAULT).diagnostics[0].detail


def test_an_engine_as_predicted_is_not_complained_of() -> None:
    """The plan's own figures and settings as a log, and each of them changed."""
    case = planned()
    bill, tokens = case.prediction.memory, case.prediction.kv_cache_tokens
    good = [
        f"INFO 03-04 10:01:02 [startup.py:18] vLLM server version {case.facts.engine.version}, serving model x",
        f"non-default args: {{'max_model_len': {case.choices.max_model_len.value}}}",
        f"Model loading took {bill.weights.value / 2**30:.2f} GiB memory and 6.2 seconds",
        f"Available KV cache memory: {bill.kv_cache.value / 2**30:.2f} GiB",
        f"GPU KV cache size: {tokens.value:,.0f} tokens",
        UP,
    ]
    told = beside(case, frozenset(), *good)
    assert [found.code for found in told.diagnostics] == ["DC763"]
    assert len(told.figures) == 3
    assert told.settings == ()
    other = [line.replace(case.facts.engine.version, "0.19.0") for line in good]
    assert [found.code for found in beside(case, frozenset(), *other).diagnostics] == ["DC763", "DC765"]
    fewer = [*good[:4], f"GPU KV cache size: {tokens.low * 0.9:,.0f} tokens", UP]
    assert [found.code for found in beside(case, frozenset(), *fewer).diagnostics] == ["DC763", "DC766"]
    shorter = [good[0], "non-default args: {'max_model_len': 512}", *good[2:]]
    assert [one.name for one in beside(case, frozenset(), *shorter).settings] == ["max_model_len"]


@pytest.mark.parametrize("path", ["none.log", "."])
def test_a_log_that_cannot_be_read(path: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "--log", path]) == 3
    assert "DC100" in capsys.readouterr().err


def test_standard_input_is_read(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{START}\n{FAULT}\n".encode())))
    assert run(["doctor", "--log", "-"]) == 0
    assert "DC301" in capsys.readouterr().out


def test_a_log_is_looked_at_alone() -> None:
    assert run(["doctor", "--log", "x", "--describe", "y"]) == 64
    assert run(["doctor"]) == 64


CASES = [
    ("mem-02", FAULT, "DC301"),
    ("cmp-05", "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "DC253"),
    ("cmp-07", "triton.compiler.errors.CompilationError: ValueError(\"type fp8e4nv not supported in this architecture. "
     "The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\")", "DC255"),
    ("cmp-09", "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: "
     "[torch.float16]", "DC511"),
    ("cmp-10", "ValueError: Prequant BitsAndBytes models with tensor parallelism is not supported. Please try with "
     "pipeline parallelism.", "DC582"),
    ("cmp-11", "  Value error, Unknown quantization method: gguf. Must be one of ['awq', 'fp8'].", "DC583"),
    ("seed-01", "  Value error, Unknown quantization method: int8. Must be one of ['awq', 'fp8'].", "DC529"),
    ("cmp-13", "ValueError: User-specified max_model_len (72000) is greater than the derived max_model_len "
     "(max_position_embeddings=32768 or model_max_length=None in model's config.json).", "DC520"),
    ("cmp-15", "RuntimeError: Error(s) in loading state_dict: size mismatch for base_model.model.lm_head.weight: "
     "copying a param with shape torch.Size([128320, 4096])", "DC236"),
    ("cmp-18", "ValueError: vLLM does not yet support DoRA.", "DC242"),
    ("cmp-19", "ValueError: LoRA rank 64 is greater than max_lora_rank 16.", "DC595"),
    ("cmp-22", "ValueError: No supported config format found in /models/adapter.", "DC202"),
    ("cmp-25", "ValueError: The repository for OpenGVLab/InternVL2-8B contains custom code which must be executed to "
     "correctly load the model.", "DC590"),
    ("flg-01", "vllm: error: unrecognized arguments: --disable-log-requests", "DC502"),
    ("flg-02", "api_server.py: error: unrecognized arguments: --rope-scaling {\"factor\":4}", "DC502"),
    ("flg-04", "vllm serve: error: unrecognized arguments: --enable-reasoning", "DC502"),
    ("flg", "vllm: error: unrecognized arguments: --max-modle-len 8192", "DC500"),
    ("ctr-01", "misc/shmutils.cc:48 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-9Kx (size "
     "9637888)", "DC713"),
    ("ctr-03", "Error response from daemon: cannot set both Count and DeviceIDs on device request", "DC711"),
    ("ctr-06", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was "
     "attempted on non supported HW", "DC570"),
    ("ctr-09", "PermissionError: [Errno 13] Permission denied: '/.cache'", "DC603"),
    ("ctr-13", "systemd[1]: vllm.service: start operation timed out. Terminating.", "DC606"),
    ("ctr-14", "OSError: [Errno 97] Address family not supported by protocol", "DC722"),
    ("ctr-16", "vllm serve: error: argument --hf-overrides: Value '{\"rope_parameters\": cannot be converted to "
     "<function loads at 0x7f>.", "DC725"),
    ("killed", "vllm.service: Main process exited, code=killed, status=9/KILL", "DC659"),
    ("ordinal", "RuntimeError: CUDA error: invalid device ordinal", "DC664"),
    ("old-card", "RuntimeError: CUDA error: no kernel image is available for execution on the device", "DC535"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_failures_that_people_report_are_recognised(line: str, code: str) -> None:
    assert codes(START, line)[0] == code


FOREIGN = [
    '2026/01/02 10:00:00 [error] 7#7: *1 open() "/srv/x" failed (2: No such file or directory)',
    "sshd[12]: error: Bind to port 22 on 0.0.0.0 failed: Address already in use.",
    "systemd[1]: postgresql.service: Main process exited, code=killed, status=9/KILL",
    "Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or directory: 'x'",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_faults_of_other_programs_are_not_taken_for_the_engines(text: str) -> None:
    assert codes(*text.split("\n")) == ["DC764"]


def test_flags_are_read_where_some_are_no_literals() -> None:
    said = "non-default args: {'lora_modules': [LoRAModulePath(name='a')], 'port': 8, 'model': '/m', 'api_key': 'k'}"
    assert {fact.name: fact.value for fact in reading(START, said).facts} == {
        "version": "0.11.2",
        "args.port": "8",
        "args.model": "/m",
    }


def test_a_deploy_yaml_that_is_wrong_hides_no_failure(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "deploy.yaml").write_text("version: 1\nname: x\n")
    (tmp_path / "engine.log").write_text(f"{START}\n{FAULT}\n")
    assert run(["doctor", "--log", str(tmp_path / "engine.log"), "-f", str(tmp_path / "deploy.yaml")]) == 3
    said = capsys.readouterr().out
    assert "DC301" in said
    assert "DC150" in said


QUIET = [
    "WARNING 12-01 01:34:27 [utils.py:255] This can cause fd limit errors like `OSError: [Errno 98]`.",
    "INFO 12-01 01:34:27 [config.py:1] CUDA out of memory is not what happened",
    'INFO:     10.0.0.7:1 - "GET /No%20available HTTP/1.1" 404 Not Found',
    '  File "/x.py", line 1, in FileNotFoundError: ',
]


@pytest.mark.parametrize("line", QUIET)
def test_what_is_no_fault_is_not_taken_for_one(line: str) -> None:
    assert codes(START, line, UP) == ["DC763"]


def test_after_the_start_only_what_can_come_then_counts() -> None:
    assert codes(START, UP, "ERROR 12-01 01:34:27 [tool.py:1] FileNotFoundError: no such tool") == ["DC763"]
    assert codes(START, FAULT, START, UP) == ["DC763"]
    assert codes(START, UP, START, FAULT) == ["DC301"]
