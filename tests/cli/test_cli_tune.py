"""`deployc tune` as it is typed: exit codes, the document, the text, and the file that it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from deployc.cli.main import run
from deployc.diagnostics import Report
from deployc.views.tune import tune as view

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The quick start with its lockfile, in a folder of its own; few configurations are left open."""
    for name in ("deploy.yaml", "deploy.lock"):
        shutil.copy(QUICKSTART / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    edit(tmp_path, "engine: {version: 0.33.0}", "engine: {version: 0.33.0, args: {max-num-batched-tokens: 2048}}")
    return tmp_path


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "deploy.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def tuned(capsys: Capture, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document."""
    code = run(["tune", "--offline", "--json", *words])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_what_meets_the_sla_as_it_is_needs_no_change(folder: Path, capsys: Capture) -> None:
    code, document = tuned(capsys)
    assert code == 0
    assert document["changes"] == []
    assert document["chosen"]["configuration"]["weights"] == "none"
    assert document["chosen"]["count"] == 1
    assert {line["verdict"] for line in document["chosen"]["sla"]} == {"meets"}
    assert document["nearest"] is None
    counts = document["counts"]
    others = sum(counts[name] for name in ("not_starting", "bounded", "simulated", "left"))
    assert counts["candidates"] == others > counts["simulated"]


def test_every_figure_has_band_unit_and_basis(folder: Path, capsys: Capture) -> None:
    _, document = tuned(capsys)
    for config in (document["chosen"], *document["front"]):
        figures = [*config["speed"].values(), config["tokens_per_second_for_cost"], config["kv_cache_tokens"]]
        for figure in (*figures, *(line["predicted"] for line in config["sla"])):
            assert figure["low"] <= figure["value"] <= figure["high"]
            assert figure["unit"]
            assert figure["basis"] in ("exact", "measured", "transferred", "modelled")
    assert all(setting["because"] and setting["reason"] for setting in document["chosen"]["settings"])


def test_write_changes_only_the_keys_and_plan_then_agrees(folder: Path, capsys: Capture) -> None:
    edit(folder, "  tpot_p95: 50ms", "  tpot_p95: 20ms  # people read that fast")
    before = (folder / "deploy.yaml").read_text()
    code, document = tuned(capsys, "--write")
    assert code == 0
    assert document["written"] == "deploy.yaml"
    assert document["changes"] == [{"key": "quantization.weights", "value": "int8"}]
    assert (folder / "deploy.yaml").read_text() == before + "quantization:\n  weights: int8\n"
    assert run(["plan", "--offline", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    chosen = document["chosen"]
    assert plan["model"]["weights"] == "int8"
    assert plan["engine"]["args"]["max-num-seqs"] == chosen["configuration"]["max_num_seqs"]
    for name, figure in plan["prediction"]["speed"].items():
        assert figure["value"] == chosen["speed"][name]["value"], name
    code, again = tuned(capsys)
    assert (code, again["changes"]) == (0, [])


def test_without_write_the_file_stays(folder: Path, capsys: Capture) -> None:
    edit(folder, "tpot_p95: 50ms", "tpot_p95: 20ms")
    before = (folder / "deploy.yaml").read_bytes()
    code, document = tuned(capsys)
    assert (code, document["written"]) == (0, None)
    assert document["changes"]
    assert (folder / "deploy.yaml").read_bytes() == before


def test_nothing_meets_it_is_exit_4_with_the_nearest_and_nothing_written(folder: Path, capsys: Capture) -> None:
    edit(folder, "tpot_p95: 50ms", "tpot_p95: 1ms")
    before = (folder / "deploy.yaml").read_bytes()
    code, document = tuned(capsys, "--write")
    assert code == 4
    assert document["chosen"] is None
    assert document["nearest"]["sla"]
    assert [found["code"] for found in document["diagnostics"] if found["severity"] == "error"] == ["DC440"]
    assert document["diagnostics"][0]["at"] == "deploy.yaml:10:13"
    assert (folder / "deploy.yaml").read_bytes() == before


def test_what_the_band_leaves_open_is_taken_with_likely(folder: Path, capsys: Capture) -> None:
    _, document = tuned(capsys)
    slowest = document["chosen"]["speed"]["tpot_p95"]
    limit = (slowest["value"] + slowest["high"]) / 2 * 1000
    edit(folder, "tpot_p95: 50ms", f"tpot_p95: {limit:.2f}ms")
    edit(folder, "hardware:", "quantization: {weights: none, kv_cache: auto}\nhardware:")
    edit(folder, "max-num-batched-tokens: 2048", "max-num-batched-tokens: 2048, max-num-seqs: 8")
    assert tuned(capsys)[0] == 4
    code, document = tuned(capsys, "--likely")
    assert code == 0
    assert document["limits_hold_for"] == "value"
    assert [line["verdict"] for line in document["chosen"]["sla"] if line["name"] == "tpot_p95"] == ["tight"]


def test_other_cards_by_name_and_by_money(folder: Path, capsys: Capture) -> None:
    words = ("--gpu", "rtx-4090", "--gpu", "A100-80GB", "--count", "1,2", "--likely")
    edit(folder, "tpot_p95: 50ms", "tpot_p95: 12ms")
    code, by_cards = tuned(capsys, *words)
    assert (code, by_cards["cost_unit"], by_cards["chosen"]["count"]) == (0, "cards", 1)
    assert by_cards["chosen"]["gpu"] == "a100-80"
    assert {"key": "hardware.gpu", "value": "a100-80"} in by_cards["changes"]
    priced = (*words, "--price", "rtx-4090=1", "--price", "a100-80=9")
    code, by_money = tuned(capsys, *priced)
    assert (code, by_money["cost_unit"]) == (0, "money/h")
    assert (by_money["chosen"]["gpu"], by_money["chosen"]["cost"]) == ("rtx-4090", 1)
    code, some = tuned(capsys, *words, "--price", "rtx-4090=1")
    assert (code, some["cost_unit"]) == (0, "cards")
    assert "DC443" in {found["code"] for found in some["diagnostics"]}


@pytest.mark.parametrize(
    "words",
    [
        ("--count", "0"), ("--count", "many"), ("--count", "²"), ("--gpu", "rtx-9999"), ("--gpu", "mi300x"),
        ("--price", "rtx-4090"), ("--price", "rtx-4090=-1"), ("--price", "nobody=1"), ("--free", "hardware.gpu"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_64(words: tuple[str, ...], folder: Path, capsys: Capture) -> None:
    assert run(["tune", "--offline", *words]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "rror" in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("gpu: rtx-4090", "gpu: rtx-9999", "DC660"),
        ("name: domain-qa\n", "name: [domain-qa\n", "DC102"),
        ("max_context: 8192", "max_context: 131072", "DC520"),
        ("max-num-batched-tokens: 2048", "no-such-flag: 1", "DC500"),
    ],
)
def test_a_wrong_file_is_3_and_says_where(old: str, new: str, code: str, folder: Path, capsys: Capture) -> None:
    edit(folder, old, new)
    exit_code, document = tuned(capsys)
    assert exit_code == 3
    found = {found["code"]: found["at"] for found in document["diagnostics"] if found["severity"] == "error"}
    assert found[code]


def test_the_text_says_choice_reasons_front_and_what_to_do(folder: Path, capsys: Capture) -> None:
    edit(folder, "tpot_p95: 50ms", "tpot_p95: 20ms")
    assert run(["tune", "--offline"]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 80
    parts = (
        "CHOSEN: the fewest cards, 1,", "~ weights", "int8 (now none)", "PREDICTED", "✓ meets", "FRONT", "tpot p95",
        "Next: `deployc tune --write`",
    )  # fmt: skip
    assert [part for part in parts if part not in text] == []
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("limit", ["20ms", "1ms"])
def test_the_text_fits_any_terminal(limit: str, width: int, folder: Path, capsys: Capture) -> None:
    edit(folder, "tpot_p95: 50ms", f"tpot_p95: {limit}")
    _, document = tuned(capsys)
    text = view(document, Report(), width=width)
    assert [line for line in text.splitlines() if len(line) > width] == []
    assert "\x1b[" in view(document, Report(), width=width, color=True)


def test_a_value_behind_an_alias_is_not_written(folder: Path, capsys: Capture) -> None:
    edit(folder, "tpot_p95: 50ms", "tpot_p95: 20ms")
    path = folder / "deploy.yaml"
    path.write_text(
        path.read_text().replace("hardware:", "x-shared: &formats {kv_cache: auto}\nquantization: *formats\nhardware:")
    )
    before = path.read_bytes()
    assert run(["tune", "--offline", "--write"]) == 1
    assert "DC444" in capsys.readouterr().err
    assert path.read_bytes() == before
