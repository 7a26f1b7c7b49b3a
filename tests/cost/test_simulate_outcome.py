"""What users of a simulated run see, from times written by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployc.cost.simulate import Load, Trace, closed, outcome, unbounded
from deployc.cost.simulate.outcome import percentile

LOAD = closed([100, 200], [11, 1], 2)
TRACE = Trace(
    sent=[0.0, 1.0], first=[2.0, 5.0], done=[7.0, 5.0], steps=20, running=9.0, busy=6.0, preempted=1,
    short_of_memory=0.7, short_of_slots=1.4,
)  # fmt: skip


def test_times_are_those_of_the_scheduler_and_the_front() -> None:
    seen = outcome(LOAD, TRACE, front=0.5)
    # 2 + 0.5 and 4 + 0.5: the median is the next one up
    assert (seen.ttft_p50, seen.ttft_p95) == pytest.approx((4.5, 4.5))
    assert (seen.e2e_p50, seen.e2e_p99) == pytest.approx((7.5, 7.5))
    # a request of one token has no time between tokens
    assert seen.tpot_p50 == seen.tpot_p99 == pytest.approx(5.0 / 10)


def test_shares_are_of_the_whole_run() -> None:
    seen = outcome(LOAD, TRACE, front=0.5)  # 7.5 s
    assert seen.requests_per_second == pytest.approx(2 / 7.5)
    assert seen.tokens_per_second == pytest.approx(12 / 7.5)
    assert (seen.busy, seen.short_of_memory, seen.short_of_slots) == pytest.approx((6 / 7.5, 0.7 / 7.5, 1.4 / 7.5))
    assert (seen.running, seen.step, seen.preempted) == (1.5, 0.3, 1)


def test_answers_of_one_token_have_no_time_between_tokens() -> None:
    trace = replace(TRACE, done=[2.0, 5.0])
    assert outcome(Load([100, 200], [1, 1], concurrency=2), trace, 0.0).tpot_p95 == 0.0


def test_above_capacity_no_wait_is_bounded_and_the_rate_is_the_most() -> None:
    seen = outcome(LOAD, TRACE, front=0.5)
    over = unbounded(seen, most=0.1)
    assert {over.ttft_p50, over.ttft_p99, over.e2e_p50, over.e2e_p99} == {math.inf}
    assert over.tpot_p95 == seen.tpot_p95
    assert over.requests_per_second == pytest.approx(0.1)
    assert over.tokens_per_second == pytest.approx(0.1 * 6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_a_percentile_is_a_value_with_the_share_below_it(values: list[float], share: float) -> None:
    ascending = sorted(values)
    found = percentile(ascending, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) <= share * len(values) + 1e-9


def test_percentiles_of_a_hundred() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [percentile(hundred, share) for share in (0.0, 0.5, 0.95, 0.99, 1.0)] == [1.0, 51.0, 96.0, 100.0, 100.0]
