"""The simulated scheduler on loads small enough to be followed by hand: every step takes one second."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployc.cost.simulate import ENDLESS, Delays, Limits, Load, Room, Trace, closed, simulate
from deployc.cost.simulate.clock import PAUSE
from deployc.cost.step import StepTime
from deployc.cost.step.work import Work

AT_ONCE = Delays(travel=0.0, spacing=0.0)
SECOND = StepTime(gpu=1.0, host=0.0, lead=0.0)


def limits(
    max_num_seqs: int = 8, budget: int = 100, tokens: float | None = None, *, caching: bool = False, block: int = 1,
    ahead: int = 2,
) -> Limits:  # fmt: skip
    """`tokens`: what the cache holds."""
    space = ENDLESS if tokens is None else Room(float(tokens), 0.0, 1.0)
    return Limits(max_num_seqs, budget, space, caching, block, ahead)


def run(load: Load, within: Limits, delays: Delays = AT_ONCE) -> Trace:
    return simulate(load, within, delays, lambda _: SECOND, record=True)


def prompt_tokens(trace: Trace) -> list[int]:
    """Of each step that has any."""
    assert trace.record is not None
    return [work.tokens for _, work in trace.record.stages if work is not None and work.tokens]


def test_a_prompt_then_a_token_a_step() -> None:
    # 0-1 the prompt, which gives the first token; 1-2 and 2-3 the others
    trace = run(closed([10], [3], 1), limits())
    assert (trace.first, trace.done, trace.steps) == ([1.0], [3.0], 3)


def test_one_token_needs_no_decoding() -> None:
    # a step each; the second is sent at 1, where nothing is in flight any more
    trace = run(closed([10, 10], [1, 1], 1), limits())
    assert trace.first == trace.done == pytest.approx([1.0, 2.0 + PAUSE])
    assert trace.sent == [0.0, 1.0]


def test_a_prompt_beyond_the_budget_goes_on_and_the_next_gets_what_is_left() -> None:
    # A 4, A 4, A 2 + B 2, then A decodes and B has 3 left: its last 1
    trace = run(closed([10, 3], [2, 2], 2), limits(budget=4))
    assert prompt_tokens(trace) == [4, 4, 4, 1]
    assert (trace.first, trace.done) == ([3.0, 4.0], [4.0, 5.0])


def test_decoding_comes_before_prompts() -> None:
    # A ends its prompt in the first step and takes one token of each budget of 4: B's prompt of 6 gets 3 and 3
    trace = run(closed([4, 6], [5, 1], 2), limits(budget=4))
    assert prompt_tokens(trace) == [4, 3, 3]
    assert (trace.first, trace.done) == ([1.0, 3.0], [5.0, 3.0])


@pytest.mark.parametrize(("ahead", "first"), [(2, 3.0), (1, 2.0)])
def test_who_comes_during_a_step_waits_for_the_rest_of_it_and_for_one_more(ahead: int, first: float) -> None:
    # B comes at 0.5. Two in flight: the step of 1-2 was formed at 0, B is in that of 2-3. One: it is in that of 1-2.
    trace = run(Load([1, 1], [10, 1], (0.0, 0.5)), limits(ahead=ahead))
    assert trace.first == [1.0, first]


@pytest.mark.parametrize(("ahead", "first"), [(2, 4.0), (1, 3.0)])
def test_a_place_is_free_two_steps_after_the_last_token(ahead: int, first: float) -> None:
    # A's last token is of the step of 1-2. That of 2-3 was formed before A was known to have ended.
    trace = run(closed([1, 1, 1], [2, 9, 1], 3), limits(max_num_seqs=2, ahead=ahead))
    assert trace.done[0] == 2.0
    assert trace.first[2] == first
    assert trace.short_of_slots == first - 1


def test_an_engine_that_has_nothing_to_form_sleeps_for_a_moment() -> None:
    # A holds the only place until 2; nothing could be formed at 1, so the core looks again a millisecond after 2
    trace = run(closed([1, 1], [2, 1], 2), limits(max_num_seqs=1))
    assert trace.first == pytest.approx([1.0, 3.0 + PAUSE])


def test_an_idle_engine_begins_with_what_it_sees_first() -> None:
    # sent at 1, seen at 1.25
    trace = run(Load([1], [1], (1.0,)), limits(), Delays(travel=0.25, spacing=0.0))
    assert trace.first == [2.25]
    # sent together, seen at 0, 0.4 and 1.2, as the front end takes its time for each: the steps of 0-1 and 1-2 are
    # formed at 0 with the first alone, that of 2-3 at 1 with the second, that of 3-4 at 2 with the third
    delays = Delays(travel=0.0, spacing=0.3, spacing_token=0.1)
    trace = run(closed([1, 5, 1], [9, 9, 1], 3), limits(), delays)
    assert trace.first == [1.0, 3.0, 4.0]


def test_a_request_is_admitted_where_all_of_its_prompt_fits() -> None:
    # A holds 6, then 7 and 8 of 10. A part of 2 of B would fit, all 5 do not: B waits until A has gone.
    trace = run(closed([6, 5], [3, 1], 2), limits(budget=8, tokens=10))
    assert prompt_tokens(trace) == [6, 5]
    assert trace.first == pytest.approx([1.0, 4.0 + PAUSE])
    assert trace.short_of_memory == 3.0
    assert trace.preempted == 0


def test_before_0_19_a_first_part_that_fits_suffices() -> None:
    # B's 7 never fit into 10 beside A's 4 and its answer. Its first 3 do, in the second step (5 + 3) and the fourth
    # (7 + 3), and are lost in the next, for which the other 3 find no room. At 5 A has ended: 4 and 3.
    load, within = closed([4, 7], [5, 1], 2), limits(budget=4, tokens=10)
    assert prompt_tokens(run(load, within)) == [4, 4, 3]
    trace = run(load, replace(within, whole_prompts=False))
    assert prompt_tokens(trace) == [4, 3, 3, 4, 3]
    assert trace.preempted == 2
    assert trace.first == pytest.approx([1.0, 7.0 + PAUSE])


def test_the_last_admitted_is_preempted_and_computed_again_with_its_answer() -> None:
    # A and B hold 8 of 12 after the first step, 10, 12; for the fourth there is no room: B leaves with 3 tokens given.
    # A ends at 6. B's 4 + 3 tokens are a prompt now, which gives the fourth; two steps more give the last.
    trace = run(closed([4, 4], [6, 6], 2), limits(tokens=12))
    assert prompt_tokens(trace) == [8, 7]
    assert trace.preempted == 1
    assert trace.first == [1.0, 1.0]
    assert trace.done == pytest.approx([6.0, 9.0 + PAUSE])


def test_what_was_preempted_is_remembered_until_its_blocks_are_given_out_again() -> None:
    # as above: B had 6 tokens in the cache, of which the one in flight is not remembered. A takes 3 blocks, B's last
    # first: 3 remain, and 4 of the 7 are computed again.
    trace = run(closed([4, 4], [6, 6], 2), limits(tokens=12, caching=True))
    assert prompt_tokens(trace) == [8, 4]
    assert trace.done == pytest.approx([6.0, 9.0 + PAUSE])


def test_a_token_in_flight_is_not_remembered() -> None:
    # of 13, one is free for A's last token: nothing of B's is overwritten, and 5 of its 6 are known
    trace = run(closed([4, 4], [4, 6], 2), limits(tokens=13, caching=True))
    assert prompt_tokens(trace) == [8, 2]
    # one at a time: all 6 are known, and the seventh has to be computed
    trace = run(closed([4, 4], [4, 6], 2), limits(tokens=13, caching=True, ahead=1))
    assert prompt_tokens(trace) == [8, 1]


def test_who_is_preempted_comes_before_those_that_wait() -> None:
    # as above, and C's 6 do not fit beside B's 7: B goes on at 6, ends at 9, then C
    trace = run(closed([4, 4, 6], [6, 6, 1], 3), limits(tokens=12))
    assert prompt_tokens(trace) == [8, 7, 6]
    assert trace.first[2] == pytest.approx(10.0 + 2 * PAUSE)


def test_a_prompt_that_was_cut_is_preempted_first() -> None:
    # A decodes from the second step on, with B's prompt of 7 beside it as 3, 3 and 1; of 12 blocks they hold 5 + 3,
    # 6 + 6, and for A's next token B gives way. It is computed again when A has ended, as 4 and 3.
    trace = run(closed([4, 7], [8, 1], 2), limits(budget=4, tokens=12))
    assert prompt_tokens(trace) == [4, 3, 3, 4, 3]
    assert trace.preempted == 1
    assert trace.done == pytest.approx([8.0, 10.0 + PAUSE])


def test_one_alone_runs_on_paper_where_nothing_would_start() -> None:
    trace = run(closed([10, 10], [3, 3], 2), limits(tokens=5))
    assert trace.done == pytest.approx([3.0, 6.0 + PAUSE])


def test_a_shared_prefix_is_computed_once_even_in_one_step() -> None:
    load = closed([20, 20, 20], [1, 1, 1], 3, shared_prefix=18)
    assert prompt_tokens(run(load, limits(caching=True, block=16))) == [20 + 4 + 4]  # whole blocks only
    assert prompt_tokens(run(load, limits(caching=False, block=16))) == [60]


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    trace = run(closed([32, 32], [1, 1], 1, shared_prefix=32), limits(caching=True, block=16))
    assert prompt_tokens(trace) == [32, 16]


def test_a_shared_prefix_is_held_once() -> None:
    # 16 in common, 4 of each: 16 + 3 x 4 = 28, and none grows
    load = closed([20] * 3, [1] * 3, 3, shared_prefix=16)
    assert prompt_tokens(run(load, limits(tokens=28, caching=True, block=16))) == [28]
    assert prompt_tokens(run(load, limits(tokens=27, caching=True, block=16))) == [24, 4]


def test_no_more_run_than_a_step_has_tokens() -> None:
    trace = run(closed([1] * 4, [5] * 4, 4), limits(max_num_seqs=4, budget=2))
    assert trace.done[:2] == [5.0, 5.0]
    assert trace.first[2] > 5.0


def test_steps_that_only_decode_are_one_stage() -> None:
    trace = run(closed([10], [100], 1), limits())
    assert trace.record is not None
    assert trace.record.stages == [(1, Work(0, 0, 1, 10, 50.0, 1, 1)), (99, Work(1, 10 + 98 / 2))]
    assert (trace.record.sent, trace.record.first, trace.record.done) == ([-1], [1], [2])
