"""The steady state by arithmetic beside simulated runs, for steps of any size."""

from __future__ import annotations

import pytest
from configured import H200, QWEN_7B, case_of, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.cost.prediction import setting
from deployc.cost.steady import steady
from deployc.cost.step import Work
from deployc.rules.case import Case

FACTS = facts_of(QWEN_7B, (H200,), tokens=8192, seqs=1024)


def loaded(prompt: int, answer: int, tokens: int, seqs: int) -> Case:
    """Twice as many in flight as have a place, so that none is ever free."""
    workload = f"{{input_tokens: {prompt}, output_tokens: {answer}, concurrency: {2 * seqs}, max_context: 8192}}"
    args = f"{{max-num-batched-tokens: {tokens}, max-num-seqs: {seqs}}}"
    return case_of(FACTS, hardware="{gpu: h200-sxm}", workload=workload, engine=f"{{version: 0.33.0, args: {args}}}")


@pytest.mark.parametrize(
    ("prompt", "answer", "tokens", "seqs"),
    [(1500, 256, 2048, 256), (1500, 256, 128, 128), (1500, 256, 16, 16), (100, 256, 256, 256), (15, 1, 2048, 1024),
     (1500, 1, 8192, 256), (4000, 16, 2048, 256)],
)  # fmt: skip
def test_a_full_engine_answers_what_a_simulated_one_does(prompt: int, answer: int, tokens: int, seqs: int) -> None:
    case = loaded(prompt, answer, tokens, seqs)
    at = setting(case.deploy, case.facts, case.choices)
    left = at.bill.kv_cache.value
    highest = at.highest(at.engine(left), left)
    assert 0.8 < highest / case.prediction.speed.requests_per_second.value < 1.2


SMALL = [loaded(prompt, answer, 16, 16) for prompt, answer in ((1, 1), (1500, 1), (8000, 64))]


@settings(deadline=None)
@given(st.sampled_from(SMALL), st.integers(1, 300), st.integers(1, 300))
def test_prompts_take_time_and_tokens_take_steps(case: Case, running: int, budget: int) -> None:
    at = setting(case.deploy, case.facts, case.choices)
    one, request = at.engine(at.bill.kv_cache.value), at.request
    found = steady(one.step, request, running, budget)
    fastest = one.step.seconds(Work(1, request.context))
    most = budget / (request.uncached_tokens + request.output_tokens) / fastest
    assert 0 < found.requests_per_second <= most * (1 + 1e-9)
