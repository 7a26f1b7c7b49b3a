"""What the next cheapest change gives: near what the whole model predicts under it, and never less than now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from configured import GIB, H200, card, case_of, facts_of
from runs import counted

from deployc.cost import predict
from deployc.facts.gpu_profile import cards
from deployc.rules.case import Case
from deployc.rules.changes.growth import MORE, growth
from deployc.rules.changes.search import options

KNOWN = {one.name: one for one in cards()}
LOAD = "{input_tokens: 1500, output_tokens: 256, %s, max_context: 8192}"


def case_on(name: str, load: str, sla: str = "{}", **sections: str) -> Case:
    facts = replace(facts_of(cards=(KNOWN[name],)), known_cards=cards())
    return case_of(facts, hardware=f"{{gpu: {name}}}", workload=LOAD % load, sla=sla, **sections)


@pytest.mark.parametrize(
    ("name", "load", "sla"),
    [
        ("rtx-4090", "concurrency: 8", "{}"),
        ("rtx-4090", "request_rate: 1", "{tpot_p95: 40ms}"),
        ("a100-80", "request_rate: 5", "{ttft_p95: 800ms, tpot_p95: 40ms}"),
        ("a100-80", "request_rate: 10", "{}"),
        ("h200-sxm", "concurrency: 64", "{tpot_p95: 12ms}"),
    ],
)
def test_it_is_near_what_is_predicted_under_the_change(name: str, load: str, sla: str) -> None:
    case = case_on(name, load, sla)
    grown = growth(case)
    assert grown is not None
    option = next(o for _, alike in options(case) for o in alike if o.words == grown.change)
    there = predict(case.deploy, option.setting.facts, option.setting.choices)
    assert grown.capacity.value > MORE * case.prediction.capacity.value
    assert grown.capacity.value == pytest.approx(there.capacity.value, rel=0.2)
    assert grown.capacity.low < grown.capacity.value < grown.capacity.high


def test_nothing_is_simulated_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_on("a100-80", "request_rate: 5", "{ttft_p95: 800ms}")
    runs = counted(monkeypatch)
    assert growth(case) is not None
    assert not runs


def test_what_costs_nothing_comes_first() -> None:
    eager = case_on("h200-sxm", "concurrency: 4", engine="{version: 0.32.0, args: {enforce-eager: true}}")
    grown = growth(eager)
    assert grown is not None
    assert "enforce-eager: false} instead of true (deploy.yaml:" in grown.change


def test_no_engine_no_growth_and_no_change_no_growth() -> None:
    small = facts_of(cards=(card("rtx-3070", 7.6 * GIB, 4.5e11, (8, 6), 40e12),))
    assert growth(case_of(small)) is None
    sixteen = case_of(
        facts_of(cards=(replace(H200, compute_capability=(10, 0), name="b200", interconnect="pcie"),) * 16),
        hardware="{gpu: b200, count: 16}",
        workload=LOAD % "concurrency: 16",
        quantization="{weights: fp8}",
    )
    assert growth(sixteen) is None
