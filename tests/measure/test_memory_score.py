"""Errors by group and quantity; every row is scored or listed with its reason, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_measured_rows import DATA, OWN, PUBLISHED, own, published

from deployc.cli.main import run
from deployc.diagnostics import Report
from deployc.measure.calibrate import document, score, score_runs
from deployc.measure.calibrate.card import card
from deployc.measure.calibrate.document import summary, worst_first
from deployc.measure.calibrate.rows import own_start, published_start
from deployc.measure.calibrate.score import Scored
from deployc.measure.calibrate.start import start
from deployc.types.figure import Figure
from deployc.views.score import score as view


def scored(measured: float, predicted: float, quantity: str = "weights_gib", room: float = 0) -> Scored:
    figure = Figure(predicted, predicted - room, predicted + room, "GiB", "exact")
    return Scored("row", "file", "model", "group", quantity, measured, figure, ())


def test_errors_are_relative_to_what_was_measured() -> None:
    """Predicted 11 and 8 of measured 10: +10 % and -20 %; mean size 15 %, bias -5 %, off by 1 and 2 GiB.

    Half the bands: 0 and 2 / 8, in the median 12.5 %.
    """
    found = summary([scored(10, 11), scored(10, 8, room=2)])
    assert found.pop("basis") == ["exact"]
    assert found == pytest.approx(
        {"n": 2, "mape": 0.15, "median_ape": 0.15, "worst": 0.2, "bias": -0.05, "mae": 1.5, "mae_gib": 1.5,
         "inside_band": 0.5, "half_width": 0.125}
    )  # fmt: skip


def test_nothing_or_less_measured_has_no_relative_error() -> None:
    found = summary([scored(0, 0), scored(-0.45, 0.5)])
    assert (found["n"], found["mape"], found["worst"], found["bias"]) == (2, None, None, None)
    assert found["mae"] == pytest.approx(0.475)  # (0 + 0.95) / 2


def test_the_logs_rounding_is_no_miss() -> None:
    assert scored(14.29, 14.294).inside_band
    assert not scored(14.29, 14.296).inside_band


def test_worst_first_and_those_without_a_relative_error_last() -> None:
    order = worst_first([scored(0, 5), scored(10, 11), scored(10, 5), scored(0, 9)])
    assert [one.predicted.value for one in order] == [5, 11, 9, 5]


def test_pages_are_judged_from_the_measured_gib() -> None:
    """Llama-3.1-8B: 32 layers x 8 heads x 128 x 2 x 2 B = 128 KiB a token, 2 MiB a block.

    58.11 GiB are 29,752.3 of them, the engine logged 29,750. A request of 8,192 tokens takes 512.
    """
    found = {one.quantity: one for one in score([published("log-017")]).scored}
    assert found["num_gpu_blocks_from_kv"].predicted.value == 29752
    assert found["kv_tokens_from_kv"].predicted.value == 29752 * 16
    assert found["max_concurrency_from_kv"].predicted.value == pytest.approx(29752 / 512)
    assert found["num_gpu_blocks_from_kv"].inside_band


def test_of_a_pipeline_the_first_stage_is_logged_and_the_blocks_of_all() -> None:
    """Logged are the first stage's GiB, without the sampler of the last; the blocks that all stages have room for."""
    whole, piped = ({one.quantity: one for one in score([published("log-017", pp=pp)]).scored} for pp in (1, 2))
    assert "num_gpu_blocks" in piped
    assert "num_gpu_blocks_from_kv" not in piped
    logits = 1024 * 128256 * 4 / 2**30  # max_num_seqs x vocabulary x 4 B: in the last stage alone
    saved = whole["activation_peak_gib"].predicted.value - piped["activation_peak_gib"].predicted.value
    assert saved > logits
    assert any("first stage" in note for note in piped["activation_peak_gib"].notes)


def test_the_budget_is_the_cards_memory_times_the_share() -> None:
    """H200: 139.80 GiB x 0.92 = 128.616, logged 128.62."""
    found = {one.quantity: one for one in score([own("q7-poisson")]).scored}
    assert found["budget_gib"].predicted.value == pytest.approx(128.616, abs=1e-6)
    assert {one.group for one in found.values()} == {"H200, vLLM 0.25.1, own starts"}


def test_weights_are_compared_with_the_slots_made_beside_them() -> None:
    """Rank 16 on every linear of Qwen2.5-7B: 28 layers x 16 x 2 B x the sum of (in + out) of its seven linears.

    q 7168, k and v 4096 each, o 7168, gate, up and down 22528 each: 90112 x 28 x 16 x 2 B = 0.0752 GiB.
    """
    plain, slots = (
        next(one.predicted.value for one in score([own(name)]).scored if one.quantity == "weights_gib")
        for name in ("q7-poisson", "q7-lora")
    )
    assert slots - plain == pytest.approx(90112 * 28 * 16 * 2 / 2**30, rel=0.02)


def test_a_warm_start_is_set_beside_the_warm_figure() -> None:
    """The same engine, measured 1.04 GiB cold and 0.29 warm: the table of 152,064 x 3,584 x 2 B is not held."""
    cold, warm = (
        next(one for one in score([own(name)]).scored if one.quantity == "activation_peak_gib")
        for name in ("q7-poisson", "q7-bt2048")
    )
    assert cold.predicted.value > 1.0
    assert warm.predicted.value < 0.5
    assert any("warm" in note for note in warm.notes)


def test_figures_on_an_assumed_input_stand_apart_and_name_it() -> None:
    """A thread that names the card and the length: version, sequences and share are defaults."""
    found = {one.quantity: one for one in score([published("log-084")]).scored}
    assert found["weights_gib"].group == "threads, other cards, inputs assumed"  # tensor parallel size
    assert found["kv_cache_tokens"].group == "threads, other cards, inputs assumed"
    notes = " ".join(found["kv_cache_tokens"].notes)
    for said in (
        "vLLM 0.8.0, of the row's words or time",
        "max_num_seqs 1024",
        "gpu_memory_utilization",
        "tensor_parallel_size 1",
    ):
        assert said in notes
    known = {one.quantity: one for one in score([published("log-084", tp=1)]).scored}
    assert known["weights_gib"].group == "threads, other cards"


@pytest.mark.parametrize(
    ("said", "taken", "assumed"),
    [
        ("0.19.0", "0.19.0", False),
        ("0.19.1rc2", "0.19.1", False),
        ("0.5.4", "0.8.4", True),
        ("nightly", "0.33.0", True),
    ],
)
def test_a_version_that_is_not_known_is_the_nearest_and_says_so(said: str, taken: str, assumed: bool) -> None:
    begun = start(published("log-017", vllm_version=said))
    assert begun.facts.engine.version == taken
    assert ("version" in begun.assumed) == assumed
    assert any(f"{said} taken as {taken}" in note for note in begun.notes) == (said != taken)


def test_a_thread_of_vllm_is_of_its_time() -> None:
    """Pull request 17122 is of April 2025, between 0.8.0 (March) and 0.9.0 (May)."""
    assert "17122" in published("log-084").source
    begun = start(published("log-084"))
    assert begun.facts.engine.version == "0.8.0"
    assert begun.choices.gpu_memory_utilization.value == 0.9  # 0.92 from 0.20
    assert "version" in begun.assumed
    old = start(published("log-084", source="https://github.com/vllm-project/vllm/pull/13109")).choices
    assert (old.max_num_seqs.value, old.max_num_batched_tokens.value) == (256, 32768)  # before V1: whole prompts
    assert start(published("log-084", source="https://example.com/1")).facts.engine.version == "0.33.0"


def test_a_name_for_several_cards_is_the_one_of_that_memory_or_the_one_that_can_hold_it() -> None:
    assert card(published("log-017", gpu="H100")).facts.name == "h100-sxm"  # 79.19 GiB
    assert card(published("log-017", gpu="H100", gpu_total_gib=93.1)).facts.name == "h100-nvl"
    large = card(published("log-115"))  # "A100": 13.72 + 36.56 GiB do not fit into 65 % of 40 GB
    assert (large.facts.name, large.assumed) == ("a100-80", True)
    assert "may be" in large.notes[0]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("L4 24GB", "l4"), ("A100 40 GB", "a100-40"), ("NVIDIA A100-SXM4-80GB", "a100-80"), ("RTX 4090", "rtx-4090"),
        ("RTX 4090 48GB", "rtx-4090-48g"), ("T4", "t4"), ("H100 NVL", "h100-nvl"),
    ],
)  # fmt: skip
def test_cards_as_people_write_them(written: str, name: str) -> None:
    assert card(published("log-017", gpu=written, gpu_total_gib=None)).facts.name == name


@pytest.mark.parametrize("written", ["24GB GPU (title)", "MI300X", "L4 80GB", "cpu", "auto"])
def test_what_is_no_card_is_missing(written: str) -> None:
    assert "is no card that is known" in card(published("log-017", gpu=written, gpu_total_gib=None)).missing


def test_memory_without_a_card_is_enough_for_the_budget() -> None:
    found = {one.quantity: one for one in score([published("log-080")]).scored}
    assert found["budget_gib"].predicted.value == pytest.approx(79.22 * 0.9, abs=1e-6)
    assert "unnamed card" in found["budget_gib"].group


def test_without_any_card_what_does_not_rest_on_one_is_scored_and_the_rest_listed() -> None:
    done = score([published("log-017", gpu=None, gpu_total_gib=None)])
    assert {"weights_gib", "num_gpu_blocks_from_kv"} <= {one.quantity for one in done.scored}
    assert "kv_cache_gib" not in {one.quantity for one in done.scored}
    assert [(left.id, left.reason) for left in done.not_scored] == [("log-017", "gpu: the row names no card")]
    assert "kv_cache_gib" in done.not_scored[0].quantities


def test_of_a_cache_type_that_nobody_knows_the_pages_are_listed_and_the_rest_is_scored() -> None:
    done = score([published("log-017", kv_cache_dtype="int3")])
    assert {"weights_gib", "activation_peak_gib", "kv_cache_gib"} <= {one.quantity for one in done.scored}
    assert not any("tokens" in one.quantity or "blocks" in one.quantity for one in done.scored)
    assert [left.reason for left in done.not_scored] == ["kv_cache_dtype: int3 is not known"]


def test_a_recalled_shape_whose_weights_disagree_is_doubted() -> None:
    row = published("log-017", config_basis="recalled", weights_gib=20.0)
    notes = score([row]).scored[0].notes
    assert any("may be wrong" in note and "8.03 billion" in note for note in notes)


def test_every_handed_row_is_scored_or_listed() -> None:
    rows = [own(row["id"]) for row in OWN] + [published(row["id"]) for row in PUBLISHED]
    done = score(rows)
    seen = {one.id for one in done.scored} | {one.id for one in done.not_scored}
    assert seen == {row.id for row in rows}
    assert {left.id: left.reason for left in done.not_scored}["log-015"] == "model_config: there is none"
    assert not any("failed" in left.reason for left in done.not_scored)


cells = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(allow_nan=True), st.text(max_size=8),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_row_stops_the_others(data: st.DataObject) -> None:
    """Whatever stands in the cells of a row and of its model_config: its figures are in one list or the other."""
    of, reader = data.draw(st.sampled_from([(OWN, own_start), (PUBLISHED, published_start)]))
    values = dict(data.draw(st.sampled_from(of)))
    for key in data.draw(st.lists(st.sampled_from(sorted(values)), max_size=4)):
        values[key] = data.draw(cells)
    if isinstance(values.get("model_config"), dict):
        config = dict(values["model_config"])
        for key in data.draw(st.lists(st.sampled_from(sorted(config) or ["hidden_size"]), max_size=2)):
            config[key] = data.draw(cells)
        values["model_config"] = config
    row = reader(values, "rows.jsonl", 1)
    done = score([row, own("q7-poisson")])
    assert any(one.id == "q7-poisson" for one in done.scored)
    mine = [one.quantity for one in done.scored if one.file == "rows.jsonl"]
    left = [name for one in done.not_scored for name in one.quantities]
    assert set(row.measured) <= {*mine, *left}
    assert json.dumps(document(done, score_runs([]), Report()))


def test_text_shows_tables_the_worst_and_what_is_left() -> None:
    rows = [own(row["id"]) for row in OWN] + [published(row["id"]) for row in PUBLISHED]
    text = view(document(score(rows), score_runs([]), Report()), color=False, width=80)
    for shown in ("H200, vLLM 0.25.1, own starts", "H100, vLLM 0.19.0, full logs", "Worst first", "Not scored",
                  "model_config: there is none"):  # fmt: skip
        assert shown in text
    assert max(len(line) for line in text.splitlines()) <= 80


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    code = run(["calibrate", "score", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_command_prints_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, str(DATA / "own.jsonl"), str(DATA / "published.jsonl"), "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found.keys() == {"format_version", "groups", "rows", "not_scored", "speed", "diagnostics"}
    weights = found["groups"]["H200, vLLM 0.25.1, own starts"]["weights_gib"]
    assert weights["n"] == len(OWN)
    assert weights["worst"] >= weights["mape"] >= 0
    errors = [abs(row["error"]) for row in found["rows"] if row["error"] is not None]
    assert errors == sorted(errors, reverse=True)


def test_a_wrong_line_is_exit_code_3_beside_what_could_be_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(OWN[0]) + "\n{\n")
    code, out, err = command(capsys, str(file))
    assert code == 3
    assert "own starts" in out
    assert "error[DC671]" in err
    assert f"{file}:2" in err
    code, out, err = command(capsys, str(file), "--json")
    found = json.loads(out)
    assert (code, err, len(found["diagnostics"])) == (3, "", 1)
    assert found["rows"]


def test_no_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys)[0] == 64
