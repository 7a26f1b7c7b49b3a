"""The memory model on the measured starts that ship with the tool: what README promises of it.

These rows are in the sample of three fitted constants (`make bench` prints them with each model left out); all else in
the model is read in the engine's sources.
"""

from __future__ import annotations

from statistics import fmean

import pytest

from deployc.data import profiles
from deployc.measure.calibrate import read, score
from deployc.measure.calibrate.score import Scored

ROWS = sorted((profiles() / "calibration" / "rows").glob("*_memory.jsonl"))
LOGGED = ("full logs", "own starts")


@pytest.fixture(scope="module")
def scored() -> tuple[Scored, ...]:
    rows, report = read(ROWS)
    assert not report.errors
    return score(rows.starts).scored


def errors(scored: tuple[Scored, ...], quantity: str, *groups: str) -> list[float]:
    """Relative errors of one quantity in the groups whose names end so."""
    found = [s.error for s in scored if s.quantity == quantity and s.group.endswith(groups) and s.error is not None]
    assert found
    return [abs(error) for error in found]


def test_the_kv_cache_of_logged_starts_is_within_half_a_percent(scored: tuple[Scored, ...]) -> None:
    found = errors(scored, "kv_cache_gib", *LOGGED)
    assert len(found) == 71
    assert fmean(found) < 0.002
    assert max(found) < 0.005


def test_blocks_tokens_and_concurrency_follow_from_the_memory_that_was_left(scored: tuple[Scored, ...]) -> None:
    for quantity in ("num_gpu_blocks_from_kv", "kv_tokens_from_kv", "max_concurrency_from_kv"):
        assert max(errors(scored, quantity, *LOGGED)) < 0.002, quantity


def test_weights_of_logged_starts(scored: tuple[Scored, ...]) -> None:
    assert fmean(errors(scored, "weights_gib", *LOGGED)) < 0.003
    assert max(errors(scored, "weights_gib", *LOGGED)) < 0.03


def test_the_activation_peak_of_logged_starts(scored: tuple[Scored, ...]) -> None:
    of = [s for s in scored if s.quantity == "activation_peak_gib" and s.group.endswith(LOGGED)]
    assert fmean(abs(s.predicted.value - s.measured) for s in of) < 0.03
    assert fmean(s.inside_band for s in of) > 0.95


def test_figures_out_of_threads_on_other_cards(scored: tuple[Scored, ...]) -> None:
    assert fmean(errors(scored, "kv_cache_gib", "other cards", "other cards, inputs assumed")) < 0.06


def test_the_band_of_the_kv_cache_holds_what_was_measured(scored: tuple[Scored, ...]) -> None:
    of = [s for s in scored if s.quantity == "kv_cache_gib" and s.group.endswith(LOGGED)]
    assert fmean(s.inside_band for s in of) > 0.95
