"""What must hold for any simulated run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deployc.cost.simulate import ENDLESS, Delays, Limits, Load, Room, Trace, closed, scheduler, simulate
from deployc.cost.simulate.cache import Cache
from deployc.cost.simulate.clock import Clock
from deployc.cost.simulate.scheduler import Scheduler
from deployc.cost.step import StepTime
from deployc.cost.step.work import Work

FREE = settings(deadline=None, max_examples=60)
GRID = 64
"""Times are multiples of 1/64 s, so that their sums are exact and no order hangs on a rounding."""


@pytest.fixture(scope="module", autouse=True)
def _exact_pause() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "PAUSE", 1 / 1024)
        yield


@dataclass(frozen=True)
class Case:
    load: Load
    limits: Limits
    delays: Delays

    def run(self) -> Trace:
        return simulate(self.load, self.limits, self.delays, time, record=True)


def seconds(work: Work) -> float:
    """It grows with the batch, not with the context."""
    return (2 + work.decodes + work.tokens) / GRID


def time(work: Work) -> StepTime:
    """All of it is the GPU's."""
    return StepTime(seconds(work), 0.0, 0.0)


times = st.integers(0, 40).map(lambda units: units / GRID)


@st.composite
def cases(draw: st.DrawFn, *, alike: bool = False) -> Case:
    """Loads and limits of any kind; each request alone fits into the cache."""
    count = draw(st.integers(1, 12))
    one, answer = st.integers(draw(st.sampled_from((1, 40))), 60), st.integers(1, 30)
    inputs = [draw(one)] * count if alike else draw(st.lists(one, min_size=count, max_size=count))
    outputs = draw(st.lists(answer, min_size=count, max_size=count))
    shared = draw(st.integers(0, min(inputs) - 1))
    load = Load(inputs, outputs, concurrency=draw(st.integers(1, 6)), shared_prefix=shared)
    if draw(st.booleans()):
        gaps = draw(st.lists(times, min_size=count, max_size=count))
        load = Load(inputs, outputs, tuple(sum(gaps[: n + 1]) for n in range(count)), shared_prefix=shared)
    largest = max(map(sum, zip(inputs, outputs, strict=True)))
    space = Room(float(draw(st.integers(largest, 4 * largest))), 0.0, 1.0)
    limits = Limits(
        draw(st.integers(1, 8)), draw(st.integers(8, 100)), draw(st.sampled_from((space, ENDLESS))),
        draw(st.booleans()), draw(st.sampled_from((1, 16))), draw(st.sampled_from((1, 2))), draw(st.booleans()),
    )  # fmt: skip
    return Case(load, limits, Delays(draw(times), draw(times), draw(times) / GRID))


def works(trace: Trace) -> list[tuple[int, Work]]:
    assert trace.record is not None
    return [(count, work) for count, work in trace.record.stages if work is not None]


@FREE
@given(cases())
def test_every_request_is_answered_after_it_is_sent(case: Case) -> None:
    trace = case.run()
    assert len(trace.done) == case.load.requests
    for sent, first, done, outputs in zip(trace.sent, trace.first, trace.done, case.load.outputs, strict=True):
        assert sent < first <= done
        assert done - first >= (outputs - 1) * seconds(Work(1, 0))


@FREE
@given(cases())
def test_every_token_is_computed_in_some_step(case: Case) -> None:
    trace = case.run()
    assert sum(count * work.sampled for count, work in works(trace)) == sum(case.load.outputs)
    begun = sum(work.begun for _, work in works(trace))
    assert begun >= case.load.requests  # who is preempted with its last token in flight does not begin again
    assert begun <= case.load.requests + trace.preempted
    tokens = sum(count * work.tokens for count, work in works(trace))
    if trace.preempted:
        return
    limits, load = case.limits, case.load
    cached = load.shared_prefix // limits.block_size * limits.block_size if limits.prefix_caching else 0
    assert tokens == sum(load.inputs) - cached * (load.requests - 1)


@FREE
@given(cases())
def test_no_step_takes_more_than_the_limits(case: Case) -> None:
    for count, work in works(case.run()):
        assert count >= 1
        assert work.decodes + work.prompts <= case.limits.max_num_seqs
        assert 1 <= work.rows <= case.limits.max_num_batched_tokens
        assert work.finished <= work.prompts


@FREE
@given(cases())
def test_the_cache_never_holds_more_than_there_is_and_nothing_in_the_end(case: Case) -> None:
    trace = Trace([0.0] * case.load.requests, [0.0] * case.load.requests, [0.0] * case.load.requests)
    cache = Cache(case.limits, case.load.shared_prefix)

    def watched(work: Work) -> StepTime:
        assert cache.fits(0)
        return time(work)

    whole = Scheduler(case.load, case.limits, case.delays, watched, trace, cache, Clock(case.limits.ahead))
    whole.run()
    for sequence in whole.running.values():  # their last token was the last of all
        cache.release(sequence, whole.step)
    assert (cache.tokens, cache.sequences, cache.users) == (0, 0, 0)


@FREE
@given(cases())
def test_the_same_load_gives_the_same_run(case: Case) -> None:
    assert case.run() == case.run()


@FREE
@given(cases(alike=True))
def test_equal_prompts_are_answered_in_the_order_in_which_they_came(case: Case) -> None:
    trace = replace(case, delays=replace(case.delays, spacing=0.0, spacing_token=0.0)).run()
    assume(not trace.preempted)
    assert trace.first == sorted(trace.first)


class Single(Scheduler):
    """Each step by itself."""

    def _until_change(self) -> int:
        return 1


@FREE
@given(cases())
def test_a_run_of_steps_is_those_steps_one_by_one(case: Case) -> None:
    count = case.load.requests
    each = Trace([0.0] * count, [0.0] * count, [0.0] * count)
    cache, clock = Cache(case.limits, case.load.shared_prefix), Clock(case.limits.ahead)
    Single(case.load, case.limits, case.delays, time, each, cache, clock).run()
    assert replace(case.run(), record=None) == each


@FREE
@given(cases())
def test_a_record_tells_the_times_again(case: Case) -> None:
    trace = case.run()
    assert trace.record is not None
    at = [0.0, *trace.record.ends]
    assert [at[n] for n in trace.record.first] == trace.first
    assert [at[n] for n in trace.record.done] == trace.done
    assert all(before <= after for before, after in pairwise(at))
    for (count, work), (before, after) in zip(trace.record.stages, pairwise(at), strict=True):
        assert work is None or after - before == count * seconds(work)


@FREE
@given(cases())
def test_more_memory_and_more_places_never_take_longer_but_for_a_few_steps(case: Case) -> None:
    """Who is admitted sooner may share a step that was another's alone: some steps more, never many."""
    ample = replace(case, limits=replace(case.limits, room=ENDLESS))
    step = seconds(Work(8, 0, 1, 60))
    assert max(ample.run().done) <= max(case.run().done) * 1.1 + 4 * step


@FREE
@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 6))
def test_a_cache_too_small_for_one_lets_one_run_at_a_time(tokens: int, answer: int, count: int) -> None:
    limits = Limits(8, 8, Room(1.0, 0.0, 1.0))
    trace = simulate(closed([tokens] * count, [answer] * count, count), limits, Delays(0, 0), time, record=True)
    assert all(work.decodes + work.prompts == 1 for _, work in works(trace))


@FREE
@given(cases(), st.integers(1, 12), st.integers(1, 3))
def test_parts_timed_together_change_nothing_where_all_take_as_long(case: Case, budget: int, stretch: int) -> None:
    case = replace(case, limits=replace(case.limits, max_num_batched_tokens=budget))
    apart = case.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "STRETCH", stretch)
        together = case.run()
    assert (together.sent, together.first, together.done) == (apart.sent, apart.first, apart.done)
    assert (together.steps, together.preempted) == (apart.steps, apart.preempted)
    assert sum(n * w.area for n, w in works(together)) == pytest.approx(sum(n * w.area for n, w in works(apart)))


def test_a_prompt_of_very_many_parts_takes_few_stages() -> None:
    limits, load = Limits(4, 4, ENDLESS), closed([100_000] * 4, [50] * 4, 4)
    assert len(works(Case(load, limits, Delays(0.0, 0.0)).run())) < 4 * 300
