"""Loads of a simulated run: lengths, arrivals, and that the same seed gives the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.cost.simulate import closed, lengths, poisson
from deployc.cost.simulate.outcome import percentile

WIDEST = 3.86
"""The most that a lognormal's 95th percentile is of its mean: exp(1.645^2 / 2)."""


@pytest.mark.parametrize("count", [600, 1000])
@pytest.mark.parametrize(("mean", "p95"), [(1500, 1600), (1500, 4000), (256, 600), (256, 900), (100, 380)])
def test_lengths_have_the_mean_and_the_95th_percentile(count: int, mean: int, p95: int) -> None:
    drawn = lengths(count, mean, p95, seed=1)
    assert len(drawn) == count
    assert sum(drawn) / count == pytest.approx(mean, rel=0.02)
    assert percentile(sorted(drawn), 0.95) == pytest.approx(p95, rel=0.02)


@settings(deadline=None, max_examples=100)
@given(st.integers(16, 400), st.floats(20, 5000), st.floats(1.01, WIDEST))
def test_few_lengths_have_the_mean_too(count: int, mean: float, over: float) -> None:
    assert sum(lengths(count, mean, mean * over, seed=1)) / count == pytest.approx(mean, rel=0.02)


def test_lengths_without_a_spread_are_alike() -> None:
    assert lengths(3, 99.6, 99.6, seed=1) == [100, 100, 100]
    assert lengths(2, 0.2, 0.0, seed=1) == [1, 1]


def test_a_spread_beyond_any_lognormal_is_the_widest_one() -> None:
    assert lengths(200, 100, 1000, seed=1) == lengths(200, 100, 390, seed=1)
    assert sum(lengths(200, 100, 1000, seed=1)) == pytest.approx(200 * 100, rel=0.02)


def test_the_seed_decides_the_order_alone() -> None:
    one, same, other = (lengths(100, 500, 1500, seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert sorted(one) == sorted(other)


def test_arrivals_come_at_the_rate_independently_of_each_other() -> None:
    load = poisson([1] * 4000, [1] * 4000, rate=5.0, seed=3)
    gaps = sorted(after - before for before, after in zip((0.0, *load.arrivals), load.arrivals, strict=False))
    assert sum(gaps) / len(gaps) == pytest.approx(0.2, rel=0.05)
    # exponential: the median is ln 2 of the mean, the 95th percentile three times it
    assert percentile(gaps, 0.5) == pytest.approx(0.2 * 0.693, rel=0.1)
    assert percentile(gaps, 0.95) == pytest.approx(0.2 * 2.996, rel=0.1)
    assert load == poisson([1] * 4000, [1] * 4000, rate=5.0, seed=3)


def test_a_closed_load_has_one_in_flight_at_least() -> None:
    assert closed([1], [1], 0).concurrency == 1
    assert closed([1, 2], [3, 4], 8, shared_prefix=1).requests == 2
