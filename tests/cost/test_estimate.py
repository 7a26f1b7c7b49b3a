"""Arithmetic without a queue: near enough to the simulation to tell which changes are worth one."""

from __future__ import annotations

import math

import pytest
from configured import A100, H200, QWEN_7B, case_of, facts_of

from deployc.cost.capacity import latencies
from deployc.cost.estimate import estimate, highest
from deployc.cost.money import per_million_tokens
from deployc.cost.prediction import setting
from deployc.types.figure import Figure

LOAD = "{input_tokens: 1500, output_tokens: 256, %s, max_context: 8192}"
FACTS = {"a100-80": facts_of(QWEN_7B, (A100,)), "h200-sxm": facts_of(QWEN_7B, (H200,)), "rtx-4090": facts_of()}


@pytest.mark.parametrize("name", list(FACTS))
@pytest.mark.parametrize("load", ["concurrency: 1", "concurrency: 8", "concurrency: 64", "request_rate: 1.5"])
def test_it_is_near_what_is_simulated(name: str, load: str) -> None:
    case = case_of(FACTS[name], hardware=f"{{gpu: {name}}}", workload=LOAD % load)
    found = estimate(setting(case.deploy, case.facts, case.choices))
    for quantity, within in (("tpot_p95", 1.4), ("e2e_p95", 1.6), ("requests_per_second", 1.15)):
        simulated = getattr(case.prediction.speed, quantity).value
        assert 1 / within < found[quantity] / simulated < within, quantity


def test_above_what_is_answered_there_is_no_latency() -> None:
    case = case_of(FACTS["a100-80"], hardware="{gpu: a100-80}", workload=LOAD % "request_rate: 90")
    found = estimate(setting(case.deploy, case.facts, case.choices))
    assert found["ttft_p95"] == found["e2e_p95"] == math.inf
    assert found["requests_per_second"] == pytest.approx(case.prediction.capacity.value)


@pytest.mark.parametrize("load", ["concurrency: 48", "request_rate: 4"])
def test_what_is_answered_inside_limits_shrinks_with_them(load: str) -> None:
    case = case_of(FACTS["a100-80"], hardware="{gpu: a100-80}", workload=LOAD % load)
    at = setting(case.deploy, case.facts, case.choices)
    rates = [highest(at, {"tpot_p95": limit}) for limit in (0.001, 0.015, 0.02, 0.03, 1.0)]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(0, abs=0.1)
    assert rates[-1] == pytest.approx(highest(at, {}), rel=0.02)
    assert latencies(case.deploy.sla) == {}


def test_a_million_tokens_cost_what_the_cards_cost_meanwhile() -> None:
    """Two cards of 1.8 an hour each are 0.001 a second; 100 tokens/s take 10,000 s for a million: 10."""
    cost = per_million_tokens(3.6, Figure(100, 80, 125, "1/s", "measured"))
    assert (cost.value, cost.low, cost.high) == pytest.approx((10, 8, 12.5))
    assert per_million_tokens(3.6, Figure(1, 0, 2, "1/s", "measured")).high == math.inf
