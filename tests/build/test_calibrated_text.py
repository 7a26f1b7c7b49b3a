"""Text of the user's: every bad line is named, lines are chosen the same way each time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, deploy_of
from spoken import jsonl

from deployc.build.text.named import named_texts
from deployc.build.text.read import read_text, spread


def codes(report: object) -> list[str]:
    return [d.code for d in report]  # type: ignore[attr-defined]


def test_texts_and_chats_are_read_with_their_numbers(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": ""}, {"role": "user", "content": "hé"}]
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"text": "one", "source": "x"}).encode() + b"\r\n\n  \n"
                     + json.dumps({"messages": chat}, ensure_ascii=False).encode())  # fmt: skip
    lines, report = read_text(path, 2)
    assert [(line.number, line.text, line.messages) for line in lines] == [(1, "one", None), (4, None, tuple(chat))]
    assert not list(report)


def test_a_pair_of_surrogates_is_one_character(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b'{"text": "\\ud83d\\uDE00"}')
    assert read_text(tmp_path / "c", 1)[0][0].text == "\U0001f600"


def test_a_call_of_a_tool_needs_no_words(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    lines, report = read_text(jsonl(tmp_path / "c", [{"messages": [call]}]), 1)
    assert len(lines) == 1 and not list(report)


BAD = {
    b'{"text": "cut': "not JSON",
    b"[1]": "not an object",
    b'"text"': "not an object",
    b'{"prompt": "x"}': "neither `text` nor `messages`",
    b'{"text": "x", "messages": []}': "both",
    b'{"text": 7}': "`text` is not a string",
    b'{"text": "  "}': "`text` is empty",
    b'{"messages": "x"}': "`messages` is not a list",
    b'{"messages": []}': "`messages` is empty",
    b'{"messages": [{"content": "x"}]}': "without `role`",
    b'{"messages": ["x"]}': "without `role`",
    b'{"messages": [{"role": "human", "content": "x"}]}': "role 'human'",
    b'{"messages": [{"role": "user", "content": ["x"]}]}': "whose `content`",
    b'{"messages": [{"role": "user", "content": null, "tool_calls": [1]}]}': "whose `content`",
    b'{"text": "\xff"}': "not UTF-8",
    b'{"text": "\\ud83d x"}': "half of a surrogate pair",
    b'{"messages": [{"role": "user", "content": "\\uDE00"}]}': "half of a surrogate pair",
    b"[" * 100_000: "not JSON",
}


@pytest.mark.parametrize("raw", BAD, ids=lambda raw: raw[:30].decode(errors="replace"))
def test_a_line_that_cannot_be_used(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + raw + b"\n")
    lines, report = read_text(path, 1)
    assert not lines and codes(report) == ["DC261"]
    assert f"line 2: {BAD[raw]}" in report.diagnostics[0].detail or BAD[raw] in report.diagnostics[0].detail


def test_all_bad_lines_are_named_at_once_also_those_not_wanted(tmp_path: Path) -> None:
    good, bare, broken = '{"text": "a"}', "{}", "{"
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join([good, bare, bare, bare, broken, good, bare]))
    lines, report = read_text(path, 1, "./c.jsonl")
    (told,) = report
    assert not lines and told.detail == (
        "./c.jsonl: lines 2-4, 7: neither `text` nor `messages`; line 5: not JSON (one object a line, on one line)."
    )


def test_a_file_full_of_bad_lines_is_told_in_few_words(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "a"}\n{}\n' * 1000)
    (told,) = read_text(path, 1)[1]
    assert told.detail.count(",") < 30 and "and 980 more" in told.detail


@pytest.mark.parametrize(("make", "why"), [
    (lambda _: None, "no such file"), (lambda path: path.mkdir(), "is a directory"),
    (os.mkfifo, "pipe or a device"), (lambda path: path.symlink_to("/dev/zero"), "pipe or a device"),
    (lambda path: path.symlink_to(path.name), "too many levels"),
    (lambda path: path.write_text(""), "it is empty"), (lambda path: path.write_text("\n \n"), "it is empty"),
])  # fmt: skip
def test_a_file_that_cannot_be_used(make: object, why: str, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    make(path)  # type: ignore[operator]
    lines, report = read_text(path, 4)
    assert not lines and codes(report) == ["DC261"] and why in report.diagnostics[0].detail


def test_fewer_lines_than_samples_are_all_used_and_said(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [{"text": "a"}] * 3)
    lines, report = read_text(path, 4)
    assert len(lines) == 3 and codes(report) == ["DC262"] and "3 lines; samples is 4" in report.diagnostics[0].detail
    assert not list(read_text(path, 3)[1])


def test_lines_are_spread_over_the_whole_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [{"text": str(number)} for number in range(1, 101)])
    assert [line.text for line in read_text(path, 5)[0]] == ["1", "21", "41", "61", "81"]
    many = [(number, 0) for number in range(97)]
    for wanted in (1, 2, 50, 96, 97, 200):
        chosen = spread(many, wanted)
        assert len(set(chosen)) == min(wanted, 97) and chosen == sorted(chosen)


def planned(folder: Path, **quantization: object) -> tuple[dict[str, str], list[tuple[str, str]]]:
    deploy = deploy_of(QWEN_ON_4090 + f"quantization: {json.dumps(quantization)}\n")
    deploy._folder = str(folder)
    digests, report = named_texts(deploy)
    assert all(d.at is not None and d.at.line > 1 for d in report), "each on its line"
    return digests, [(d.code, d.detail) for d in report]


def test_a_plan_has_the_digests_of_the_texts_it_names(tmp_path: Path) -> None:
    jsonl(tmp_path / "c.jsonl", [{"text": "a"}] * 8)
    jsonl(tmp_path / "q.jsonl", [{"text": "b"}])
    digests, told = planned(
        tmp_path, calibration={"data": "./c.jsonl", "samples": 8}, quality={"data": "q.jsonl", "samples": 2}
    )
    assert set(digests) == {"./c.jsonl", "q.jsonl"} and all(d.startswith("sha256:") for d in digests.values())
    assert [code for code, _ in told] == ["DC262"] and told[0][1].startswith("q.jsonl: 1 line;")
    before = digests["./c.jsonl"]
    jsonl(tmp_path / "c.jsonl", [{"text": "a"}] * 9)
    assert planned(tmp_path, calibration={"data": "./c.jsonl", "samples": 8})[0]["./c.jsonl"] != before
    assert planned(tmp_path, quality={"max_mean_kl": 1}) == ({}, [])


def test_a_plan_says_which_texts_are_missing_all_at_once(tmp_path: Path) -> None:
    digests, told = planned(tmp_path, calibration={"data": "./c.jsonl"}, quality={"data": "./q.jsonl"})
    assert digests == {} and [code for code, _ in told] == ["DC261", "DC261"]
    assert "./c.jsonl" in told[0][1] and "./q.jsonl" in told[1][1]
