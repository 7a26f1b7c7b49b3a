"""The fit of the speed model: runs that the model itself made are found again, and folds never see what they judge."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deployc.cli.calibrate import app
from deployc.data import profiles
from deployc.diagnostics import Stop
from deployc.measure.calibrate import read
from deployc.measure.calibrate.speed import folds
from deployc.measure.calibrate.speed.bands import HELD, LEAST, banded, factors
from deployc.measure.calibrate.speed.fit import basis_with, fit
from deployc.measure.calibrate.speed.fitting import fitting
from deployc.measure.calibrate.speed.folds import Residual, residuals
from deployc.measure.calibrate.speed.names import BESIDE, constants_of, flat
from deployc.measure.calibrate.speed.priors import Priors, priors
from deployc.measure.calibrate.speed.profile import profile, write
from deployc.measure.calibrate.speed.replay import FITTED, engine_of, replay
from deployc.measure.calibrate.speed.sample import Sample, samples, serve

ROWS = profiles() / "calibration" / "rows" / "h200_speed.jsonl"
NAMED = (
    "q7-bf16/128x128/c1",
    "q7-bf16/1500x256/c8",
    "q7-fp8/1500x256/c32",
    "q05-bf16/128x128/c1",
    "q7-poisson/1500x256/r4",
)


@pytest.fixture(scope="module")
def known() -> Priors:
    return priors()


@pytest.fixture(scope="module")
def chosen() -> list[Sample]:
    rows, _ = read([ROWS])
    made, _ = samples(run for run in rows.runs if run.start.id in NAMED)
    assert len(made) == len(NAMED)
    return made


def made_with(of: list[Sample], constants: dict[str, float]) -> list[Sample]:
    """The same runs as an engine with these constants would have measured them."""
    found = []
    for sample in of:
        seen = serve(sample, basis_with(sample, constants_of(constants)))
        found.append(replace(sample, measured={name: getattr(seen, name) for name in FITTED}))
    return found


def test_a_flat_list_of_constants_comes_back(known: Priors) -> None:
    named = known.values()
    assert flat(constants_of(named)) == {name: value for name, value in named.items() if name != BESIDE}
    slower = constants_of(named, alone=False)
    assert slower.host_step == pytest.approx(named["host_step"] * named[BESIDE])
    assert slower.kernels["fp8"].host_layer == pytest.approx(named["fp8.host_layer"] * named[BESIDE])
    assert slower.layer == named["layer"]
    with pytest.raises(KeyError, match="kv_stream"):
        constants_of({name: value for name, value in named.items() if name != "kv_stream"})


def test_a_replay_is_the_simulation_where_the_constants_are_the_same(chosen: list[Sample], known: Priors) -> None:
    constants = constants_of(known.values())
    for sample in chosen:
        one = engine_of(sample, basis_with(sample, constants))
        again = replay(sample, one, constants).quantities(constants)
        assert again.tolist() == pytest.approx([getattr(one.serve(sample.load), name) for name in FITTED])


def test_a_replay_under_other_constants_is_near_the_simulation_under_them(chosen: list[Sample], known: Priors) -> None:
    before = constants_of(known.values())
    after = constants_of(known.values() | {"kv_stream": 0.7, "bf16.stream": 0.7, "host_step": 3e-3})
    for sample in chosen:
        one = engine_of(sample, basis_with(sample, before))
        quick = replay(sample, one, before).quantities(after)[:2]
        whole = engine_of(sample, basis_with(sample, after)).serve(sample.load)
        assert quick.tolist() == pytest.approx([whole.tokens_per_second, whole.tpot_p50], rel=0.05)


def test_a_fit_finds_the_runs_of_an_engine_again(chosen: list[Sample], known: Priors) -> None:
    real = known.values() | {"bf16.stream": 0.78, "fp8.stream": 0.9, "host_step": 2.6e-3, "layer": 4e-5}
    measured = made_with(chosen, real)
    before, after = residuals(measured, known.values()), residuals(measured, fit(measured, known, rounds=2))

    def off(found: list[Residual], name: str) -> float:
        return max(abs(each.of[name]) for each in found)

    assert off(before, "tpot_p50") > 0.08
    assert off(after, "tpot_p50") < 0.02
    assert off(after, "tokens_per_second") < 0.02


def test_a_configuration_is_judged_where_its_kinds_of_work_stand_in_the_rest(known: Priors) -> None:
    rows, _ = read([ROWS])
    made, _ = samples(rows.runs)
    cut = folds.configurations(made, known, known.values())
    names = {fold.name for fold in cut}
    assert {"q7-bf16", "q05-bf16", "q32-bf16", "q7-poisson"} <= names
    assert not names & {"q7-fp8", "q7-w4a16", "q30moe-bf16", "q7-eager", "q7-tp2"}  # alone of their kind in these rows
    for fold in cut:
        assert {sample.config for sample in fold.test} == {fold.name}
        assert fold.name not in {sample.config for sample in fold.train}
        assert len(fold.train) + len(fold.test) == len(made)


def test_a_kind_held_out_begins_at_what_is_known_without_it(known: Priors) -> None:
    rows, _ = read([ROWS])
    made, _ = samples(rows.runs)
    cut = {fold.name: fold for fold in folds.kinds(made, known, {"host_step": 1.0})}
    assert set(cut) == {"fp8", "int8", "w4a16", "experts", "eager", "adapter", "tensor-parallel"}
    for name, fold in cut.items():
        assert all(name in sample.kinds for sample in fold.test)
        assert not any(name in sample.kinds for sample in fold.train)
        assert fold.begin == known.values()


def residual(sample: Sample, fold: str, off: float) -> Residual:
    return Residual(sample, fold, {"tpot_p50": off})


def test_a_band_holds_so_many_of_the_residuals(chosen: list[Sample]) -> None:
    off = [n / 1000 * (-1) ** n for n in range(1, 101)]  # up to 10 %, either way
    width = factors([residual(chosen[0], "a", each) for each in off])["tpot_p50"]
    assert width == pytest.approx(math.exp(HELD / 10))
    assert factors([residual(chosen[0], "a", 0.001)])["tpot_p50"] == LEAST


def test_no_fold_judges_itself(chosen: list[Sample]) -> None:
    found = banded([residual(chosen[0], "far", 0.5), residual(chosen[1], "near", 0.05)], "measured")
    near = next(figures["tpot_p50"] for sample, figures in found if sample is chosen[1])
    assert near.high / near.value == pytest.approx(math.exp(0.5))  # of the other fold
    assert near.value == pytest.approx(chosen[1].measured["tpot_p50"] * math.exp(0.05))


def test_an_entry_is_put_in_place_of_the_one_it_renews(chosen: list[Sample], known: Priors, tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    path.write_text((profiles() / "calibration" / "speed.json").read_text(encoding="utf-8"), encoding="utf-8")
    before = json.loads(path.read_text(encoding="utf-8"))["profiles"]
    off = [residual(sample, sample.config, 0.03) for sample in chosen]
    write(profile(chosen, known.values(), off, off, "here"), path)
    after = json.loads(path.read_text(encoding="utf-8"))["profiles"]
    assert [entry["gpu"] for entry in after] == [entry["gpu"] for entry in before]
    assert after[0]["said"] == before[0]["said"]
    assert after[0]["rows"] == ["h200_speed.jsonl"]
    assert after[0]["constants"]["host_step"] == known.of["host_step"].value
    assert after[0]["errors"]["modelled"] == before[0]["errors"]["modelled"]
    assert after[1] == before[1]


def test_too_few_rows_and_rows_of_several_cards_are_said(tmp_path: Path) -> None:
    rows, _ = read([ROWS])
    with pytest.raises(Stop, match="DC674"):
        fitting(rows.runs[:3], workers=1)
    lines = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()[:12]]
    mixed: list[dict[str, Any]] = [line | ({"gpu": "h100-sxm"} if n % 2 else {}) for n, line in enumerate(lines)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in mixed), encoding="utf-8")
    told = CliRunner().invoke(app, ["fit", str(path), "--json"])
    document = json.loads(told.stdout)
    assert [found["code"] for found in document["diagnostics"]] == ["DC675"]
    assert "h100-sxm" in document["diagnostics"][0]["detail"]
