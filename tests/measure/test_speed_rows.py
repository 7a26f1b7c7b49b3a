"""Rows of runs: what is read, what is left out with a note, and what cannot be simulated, by the key that says so."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployc.data import profiles
from deployc.measure.calibrate import read, score_runs
from deployc.measure.calibrate.config import Unknown
from deployc.measure.calibrate.speed.load import MOST_REQUESTS
from deployc.measure.calibrate.speed.row import QUANTITIES, SpeedRow, speed_row
from deployc.measure.calibrate.speed.sample import MOST_STEPS, Sample, sample, samples, serve

SHIPPED = profiles() / "calibration" / "rows" / "h200_speed.jsonl"
ROWS = {row["id"]: row for row in map(json.loads, SHIPPED.read_text().splitlines())}
PLAIN, OPEN = "q7-bf16/1500x256/c32", "q7-poisson/1500x256/r8s0.6"


def run(name: str = PLAIN, load: Mapping[str, Any] | None = None, **changed: Any) -> SpeedRow:
    """A shipped row, with cells of it and of its load changed."""
    values = ROWS[name] | changed
    if load is not None:
        values["load"] = ROWS[name]["load"] | load
    return speed_row(values, "runs.jsonl", 7)


def effective(**changed: Any) -> dict[str, Any]:
    return {"engine_effective": ROWS[PLAIN]["engine_effective"] | changed}


def lengths(**changed: Any) -> dict[str, Any]:
    return {"lengths": ROWS[OPEN]["load"]["lengths"] | changed}


def why(row: SpeedRow) -> str:
    with pytest.raises(Unknown) as told:
        sample(row)
    return str(told.value)


def test_a_run_is_what_the_engine_ran_with() -> None:
    made = sample(run("q7-24g-mlen4k/1500x256/c256"))
    choices = made.choices
    assert choices.gpu_memory_utilization.value == 0.1545
    assert (choices.max_num_seqs.value, choices.max_num_batched_tokens.value) == (64, 2048)
    assert (choices.max_model_len.value, choices.kv_cache_dtype.value) == (4096, "auto")
    assert (made.config, made.card, made.version, set(made.kinds)) == ("q7-24g-mlen4k", "H200", "0.25.1", {"bf16"})
    assert (made.load.concurrency, made.load.requests, made.longest) == (256, 384, 1756)
    assert made.measured["ttft_p95"] == ROWS[made.id]["ttft_ms"]["p95"] / 1000
    assert tuple(made.measured) == QUANTITIES
    assert 5e9 < made.available.value < 7e9  # 139.8 GiB x 0.1545 less weights and what else is needed
    assert made.notes == ()


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("q7-fp8/128x128/c1", {"fp8"}), ("q7-w8a8/128x128/c1", {"int8"}), ("q7-w4a16/128x128/c1", {"w4a16"}),
        ("q7-eager/1500x256/c1", {"bf16", "eager"}), ("q30moe-bf16/128x128/c1", {"bf16", "experts"}),
        ("q7-tp2/128x128/c1", {"bf16", "tensor-parallel"}), ("q7-lora/128x128/c256", {"bf16", "adapter"}),
    ],
)  # fmt: skip
def test_the_kind_of_a_run(name: str, kinds: set[str]) -> None:
    made = sample(run(name))
    assert made.kinds == kinds
    assert len(made.facts.devices) == made.choices.tensor_parallel_size.value == ROWS[name]["tp"]


def test_arrivals_and_lengths_are_those_that_were_drawn() -> None:
    load = sample(run(OPEN)).load
    drawn = ROWS[OPEN]["load"]["lengths"]
    assert (load.inputs, load.outputs) == (drawn["isl"], drawn["osl"])
    assert load.arrivals == tuple(accumulate(drawn["gap_s"]))
    assert load.concurrency == 0


def test_no_more_are_in_flight_than_the_cap_allows() -> None:
    assert sample(run(load={"in_flight_cap": 8})).load.concurrency == 8
    assert sample(run(load={"concurrency": None, "in_flight_cap": 8})).load.concurrency == 8
    assert any("limit of 10" in note for note in sample(run(OPEN, load={"in_flight_cap": 10})).notes)


def test_a_shared_prefix_is_simulated() -> None:
    basis = {"shared_prefix": 1200}
    assert sample(run(load=basis)).load.shared_prefix == 1200
    plain, shared = (score_runs([run(load=load)]).scored for load in ({}, basis))
    ttft = [next(one.predicted.value for one in of if one.quantity == "ttft_p50") for of in (plain, shared)]
    assert ttft[1] < 0.9 * ttft[0]
    off = run(load=basis, **effective(enable_prefix_caching=False))
    assert not sample(off).choices.enable_prefix_caching.value


def test_an_adapter_is_told_by_the_flags_or_by_the_row() -> None:
    by_row = run("q7-lora/128x128/c256", engine_args={}, lora={"rank": 64, "adapters": 4})
    assert (by_row.start.max_lora_rank, by_row.start.max_loras) == (64, 4)
    by_flags = run("q7-lora/128x128/c256", lora={"rank": 8})
    assert by_flags.start.max_lora_rank == 16  # the slots are of the engine's rank
    some = run("q7-lora/128x128/c256", lora={"rank": 16, "in_every_request": False})
    assert any("in_every_request" in note for note in some.start.notes)


def test_a_quantization_that_the_engine_did_not_see_is_none() -> None:
    row = speed_row(ROWS["q7-fp8/128x128/c1"] | {"engine_effective": effective()["engine_effective"]}, "runs.jsonl", 1)
    made = sample(row)
    assert made.kinds == {"bf16"}
    assert any("did not take the quantization" in note for note in made.notes)


def test_the_word_for_a_quantization_stands_in_for_its_config() -> None:
    plain = {key: value for key, value in ROWS["q7-w8a8/128x128/c1"]["model_config"].items() if key[:5] != "quant"}
    for word, kinds in (("w8a8", {"int8"}), ("w4a16", {"w4a16"}), ("fp8", {"fp8"})):
        assert sample(run("q7-w8a8/128x128/c1", model_config=plain, quant=word)).kinds == kinds


@pytest.mark.parametrize(
    "changed",
    [
        {"out_tok_s": None}, {"out_tok_s": -1}, {"out_tok_s": 0}, {"out_tok_s": math.nan}, {"out_tok_s": math.inf},
        {"out_tok_s": "fast"}, {"out_tok_s": True}, {"out_tok_s": [1]}, {"out_tok_s": 10**30},
    ],
)  # fmt: skip
def test_a_figure_that_is_none_is_left_out_and_the_others_kept(changed: dict[str, Any]) -> None:
    row = run(**changed)
    assert set(row.measured) == {*QUANTITIES} - {"tokens_per_second"}
    assert len(row.start.notes) == (changed["out_tok_s"] is not None)
    assert set(sample(row).measured) == set(row.measured)


def test_times_that_are_no_object_or_lack_a_percentile_are_left_out() -> None:
    row = run(ttft_ms=12.5, tpot_ms={"p50": 4.2}, e2e_ms={"p50": None, "p95": "late"})
    assert set(row.measured) == {"tokens_per_second", "requests_per_second", "tpot_p50"}
    assert row.measured["tpot_p50"] == pytest.approx(0.0042)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (run(load={"kind": "burst"}), "load.kind: 'burst'"),
        (run(load={"kind": None}), "load.kind: there is none"),
        (run(load={"kind": ["closed"]}), "load.kind: "),
        (run(load={"requests": 0}), "load.requests: 0"),
        (run(load={"requests": -3}), "load.requests: -3"),
        (run(load={"requests": 10**12}), "load.requests: 1,000,000,000,000"),
        (run(load={"requests": None}), "load.requests: there is none"),
        (run(load={"isl": None}), "load.isl: there is none"),
        (run(load={"isl": "1500"}), "load.isl: '1500'"),
        (run(load={"osl": 0.5}), "load.osl: 0.5"),
        (run(load={"isl": 10**14}), "load.isl: 100000000000000"),
        (run(load={"isl": 40_000}), "a request of 40,256 tokens, and max_model_len is 32,768"),
        (run(load={"concurrency": None, "in_flight_cap": None}), "load.concurrency"),
        (run(load={"concurrency": "all", "in_flight_cap": None}), "load.concurrency"),
        (run(load={"shared_prefix": 1500}), "load.shared_prefix"),
        (run(load={"shared_prefix": -1}), "load.shared_prefix"),
        (run(load={"spread": 0.6}), "load.spread says that lengths differ"),
        (run(OPEN, load={"lengths": None}), "load.lengths.isl"),
        (run(OPEN, load={"lengths": None, "spread": 0}), "load.lengths.gap_s"),
        (run(OPEN, load=lengths(isl=[])), "load.lengths.isl: []"),
        (run(OPEN, load=lengths(isl={"1": 2})), "load.lengths.isl"),
        (run(OPEN, load=lengths(osl=[1, 2])), "96 of isl and 2 of osl"),
        (run(OPEN, load=lengths(isl=[1.5] * 96)), "tokens are whole numbers"),
        (run(OPEN, load=lengths(isl=[0] * 96)), "load.lengths.isl: 0"),
        (run(OPEN, load=lengths(isl=[math.nan] * 96)), "load.lengths.isl: nan"),
        (run(OPEN, load=lengths(isl=[True] * 96)), "load.lengths.isl: True"),
        (run(OPEN, load=lengths(isl=["1500"] * 96)), "load.lengths.isl: '1500'"),
        (run(OPEN, load=lengths(isl=[1] * (MOST_REQUESTS + 1))), "load.lengths.isl: 20,001"),
        (run(OPEN, load=lengths(gap_s=[0.1])), "load.lengths.gap_s: 1 for 96 requests"),
        (run(OPEN, load=lengths(gap_s=[-0.1] * 96)), "load.lengths.gap_s: -0.1"),
        (run(OPEN, load=lengths(gap_s=[math.inf] * 96)), "load.lengths.gap_s: inf"),
        (run(load={"requests": 20_000, "isl": 30_000}, **effective(max_num_batched_tokens=1)), "steps"),
        (run(gpu="MI300X"), "gpu: MI300X is no card that is known"),
        (run(gpu=None), "gpu: the row names no card"),
        (run(gpu=["h200"]), "gpu: the row names no card"),
        (run(model_config=None), "model_config: there is none"),
        (run(model_config={"model_type": "nobody"}), "model_config: "),
        (run(quant="int3-secret", **effective(quantization_seen="int3")), "quantization: int3-secret is not known"),
        (run(kv_cache_dtype="int3"), "kv_cache_dtype: int3 is not known"),
        (run(clean=False), "clean: 0.0% of the prompt tokens"),
        (run(clean=None, repeated_prompt_cached_share=0.25), "clean: 25.0% of the prompt tokens"),
        (run(clean=False, repeated_prompt_cached_share="much"), "clean: some of the prompt tokens"),
        (run(out_tok_s=0, req_s=None, ttft_ms={}, tpot_ms=None, e2e_ms=[]), "nothing that is predicted was measured"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_simulated_is_told_by_its_key(row: SpeedRow, said: str) -> None:
    assert said in why(row)


def test_steps_are_counted_before_they_are_simulated() -> None:
    load = {"requests": 100, "isl": 30_000}  # 600,000 steps of 5 tokens
    assert f"at most {MOST_STEPS:,} are simulated" in why(run(load=load, **effective(max_num_batched_tokens=5)))


def test_an_engine_that_the_row_does_not_tell_takes_its_own_settings_and_says_so() -> None:
    row = run(engine_effective=None)
    made = sample(row)
    assert made.choices.max_num_seqs.value == 1024  # a server's, on this card
    assert any(note.startswith("max_num_seqs 1024") for note in made.notes)


def test_a_sample_can_be_sent_to_another_process() -> None:
    made = sample(run("q7-lora/128x128/c256"))
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    assert isinstance(again, Sample)
    assert (again.load, again.measured, again.choices) == (made.load, made.measured, made.choices)
    assert len(pickle.dumps(made)) < 100_000


def test_a_file_of_starts_and_runs_is_read_into_both(tmp_path: Path) -> None:
    start = (SHIPPED.parent / "h200_memory.jsonl").read_text().splitlines()[0]
    few = {key: ROWS[PLAIN][key] for key in ("load", "tpot_ms")}
    none = {"load": {"kind": "closed"}, "engine": "vllm"}
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([start, json.dumps(ROWS[PLAIN]), json.dumps(few), json.dumps(none)]))
    rows, report = read([file])
    assert [row.id for row in rows.starts] == ["q7-bf16"]
    assert [(row.start.id, row.start.line) for row in rows.runs] == [(PLAIN, 2), ("line 3", 3)]
    [fault] = report
    assert (fault.code, fault.at.line if fault.at else 0) == ("DC672", 4)
    assert "no figure of speed" in fault.detail


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**20), st.floats(), st.text(max_size=8),
    st.lists(st.integers(-2, 3000), max_size=4), st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_cell_stops_the_others(data: st.DataObject) -> None:
    """Any cells of a row, its load, its engine or its lengths: scored or listed, and its neighbour is scored."""
    values = json.loads(json.dumps(ROWS[data.draw(st.sampled_from([PLAIN, OPEN, "q7-lora/128x128/c256"]))]))
    parts = [values, values["load"], values["engine_effective"], values["ttft_ms"], values["model_config"]]
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from(parts))
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(CELLS)
    row = speed_row(values, "runs.jsonl", 1)
    done = score_runs([row, run()])
    assert not [left.reason for left in done.not_scored if "deployc failed" in left.reason]
    assert any(one.id == PLAIN and one.file == "runs.jsonl" for one in done.scored)
    mine = {one.quantity for one in done.scored} | {name for one in done.not_scored for name in one.quantities}
    assert set(row.measured) <= mine


def test_a_fault_of_ours_is_listed_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("deployc.measure.calibrate.speed.sample.memory", broken)
    made, [left] = samples([run()])
    assert made == []
    assert (left.id, left.line, "ZeroDivisionError" in left.reason) == (PLAIN, 7, True)


def test_less_memory_for_the_cache_never_serves_more() -> None:
    from deployc.cost.speed_basis import speed_basis

    made = sample(run("q7-24g/1500x256/c128"))
    basis = speed_basis(made.facts, made.choices)
    little, all_of_it = (serve(made, basis, share * made.available.value) for share in (0.25, 1.0))
    assert little.tokens_per_second < all_of_it.tokens_per_second
