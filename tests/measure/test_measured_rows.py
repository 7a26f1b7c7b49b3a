"""Rows of both formats under the same names; a bad cell is left out, a bad line is a diagnostic with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deployc.measure.calibrate import read
from deployc.measure.calibrate.rows import Row, own_start, published_start

DATA = Path(__file__).parent / "data"
OWN = [json.loads(line) for line in (DATA / "own.jsonl").read_text().splitlines()]
PUBLISHED = [json.loads(line) for line in (DATA / "published.jsonl").read_text().splitlines()]


def own(name: str, **changed: Any) -> Row:
    return own_start(next(row for row in OWN if row["id"] == name) | changed, "own.jsonl", 1)


def published(name: str, **changed: Any) -> Row:
    return published_start(next(row for row in PUBLISHED if row["id"] == name) | changed, "published.jsonl", 1)


def test_both_formats_give_the_same_names() -> None:
    ours, theirs = own("q7-poisson").measured, published("log-017").measured
    assert (ours["kv_cache_gib"], ours["kv_cache_tokens"], ours["max_concurrency"]) == (113.06, 2116976, 64.6)
    assert (theirs["kv_cache_gib"], theirs["kv_cache_tokens"], theirs["max_concurrency"]) == (58.11, 476000, 58.11)
    assert (ours["total_non_kv_gib"], theirs["total_non_kv_gib"]) == (15.56, 17.12)
    assert (own("q7-poisson").version, published("log-017").version) == ("0.25.1", "0.19.0")


def test_an_own_start_has_its_slots_and_says_whether_its_cache_was_warm() -> None:
    assert (own("q7-lora").max_loras, own("q7-lora").max_lora_rank) == (1, 16)
    assert own("q7-poisson").max_loras is None
    assert [own(name).warm for name in ("q7-bt2048", "q7-poisson")] == [True, False]


def test_a_quantization_that_the_engine_did_not_take_is_none() -> None:
    row = own("q7-gptq")
    assert "quantization_config" not in (row.config or {})
    assert any("16 bit" in note for note in row.notes)


@pytest.mark.parametrize(
    ("written", "card", "count"),
    [
        ("2x RTX 3090 (NVLink)", "RTX 3090", 2), ("1x L40S", "L40S", 1), ("A100 80GB", "A100 80GB", None),
        ("4x NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090", 4), ("8xH100", "H100", 8),
        ("H100 x2", "H100", 2), (None, None, None), ("(title)", None, None),
    ],
)  # fmt: skip
def test_the_count_is_taken_off_the_card(written: str | None, card: str | None, count: int | None) -> None:
    row = published("log-017", gpu=written)
    assert (row.gpu, row.cards) == (card, count)


def test_arguments_that_the_prediction_does_not_follow_are_noted() -> None:
    row = own("q7-poisson", engine_args={"max_num_seqs": 128, "cpu_offload_gb": 4})
    assert row.notes == ("the prediction does not follow cpu_offload_gb",)


def test_a_figure_that_was_rounded_in_its_source_says_so() -> None:
    row = published("log-096")
    assert row.measured == {"kv_cache_tokens": 55000}
    assert any("~55k" in note for note in row.notes)


@pytest.mark.parametrize("bad", ["2", [1], {}, True, float("nan"), float("inf"), 10**400, 2000, -1, 0, 1.5])
def test_a_bad_cell_is_left_out_and_noted(bad: Any) -> None:
    row = published("log-017", tp=bad)
    assert row.tensor_parallel_size is None
    assert any(note.startswith("tp: ") for note in row.notes)


def test_a_word_where_a_figure_was_measured_is_left_out_and_noted() -> None:
    row = published("log-017", weights_gib="about 15")
    assert "weights_gib" not in row.measured
    assert any("about 15" in note for note in row.notes)


def test_lines_that_are_no_rows_are_told_with_their_place_and_the_others_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    speed = {"id": "s", "engine": "vllm", "load": {"kind": "closed"}}
    file.write_text("\n".join([json.dumps(OWN[0]), "{oops", "", json.dumps(speed), "[1]", "more"]))
    rows, report = read([file])
    assert [row.id for row in rows.starts] == [OWN[0]["id"]]
    found = {d.code: (d.at.line if d.at else 0, d.detail) for d in report}
    assert found.keys() == {"DC671", "DC672"}
    assert found["DC671"][0] == 2
    assert "lines 6" in found["DC671"][1]
    assert found["DC672"][0] == 4
    assert "speed" in found["DC672"][1]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b""])
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "rows.jsonl"
    if content is not None:
        file.write_bytes(content)
    rows, report = read([file, tmp_path])
    assert not rows
    assert [d.code for d in report] == ["DC672" if content == b"" else "DC670", "DC670"]
