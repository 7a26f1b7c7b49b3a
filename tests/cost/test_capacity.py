"""Capacity: a load below it meets the limits when simulated, one above does not; a tighter limit never raises it."""

from __future__ import annotations

import pytest
from configured import A100, H200, QWEN_7B, case_of, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import counted

from deployc.cost import predict
from deployc.cost.capacity import Loads, latencies, meets
from deployc.cost.prediction import setting
from deployc.cost.steady import most_running
from deployc.rules.case import Case
from deployc.types.facts import Facts

CARDS: dict[str, tuple[Facts, str]] = {
    "rtx-4090": (facts_of(), "{gpu: rtx-4090}"),
    "a100-80": (facts_of(QWEN_7B, (A100,)), "{gpu: a100-80}"),
    "h200-sxm": (facts_of(QWEN_7B, (H200,), tokens=8192, seqs=1024), "{gpu: h200-sxm}"),
}
EVEN, SPREAD = "input_tokens: 1500, output_tokens: 256", (
    "input_tokens: {mean: 1500, p95: 4000}, output_tokens: {mean: 256, p95: 600}"
)  # fmt: skip


def served(card: str, load: str, sla: str) -> Case:
    facts, hardware = CARDS[card]
    return case_of(facts, hardware=hardware, workload=f"{{{load}, max_context: 8192}}", sla=sla)


def loads(case: Case) -> Loads:
    at = setting(case.deploy, case.facts, case.choices)
    left = at.bill.kv_cache.value
    most = most_running(at.room(left), case.choices.max_num_seqs.value)
    return Loads(at.engine(left), case.deploy, at.request, most, case.choices.replicas.value)


@pytest.mark.parametrize(
    ("card", "load", "sla"),
    [
        ("rtx-4090", f"{EVEN}, request_rate: 2", "{tpot_p95: 50ms}"),
        ("rtx-4090", f"{SPREAD}, request_rate: 0.8", "{ttft_p95: 1500ms, e2e_p95: 60s}"),
        ("a100-80", f"{EVEN}, request_rate: 1.6", "{ttft_p95: 400ms}"),
        ("a100-80", f"{SPREAD}, request_rate: 4", "{tpot_p95: 36ms}"),
        ("h200-sxm", f"{EVEN}, request_rate: 14", "{ttft_p95: 200ms, tpot_p95: 16ms}"),
        ("h200-sxm", f"{SPREAD}, request_rate: 5", "{ttft_p95: 300ms}"),
    ],
)
def test_arrivals_under_the_capacity_meet_the_limits_and_above_it_do_not(card: str, load: str, sla: str) -> None:
    case = served(card, load, sla)
    limits, at = latencies(case.deploy.sla), loads(case)
    share = case.prediction.capacity.value / at.highest
    assert meets(at.serve(0.95 * share), limits)
    assert not meets(at.serve(1.15 * share), limits)


@pytest.mark.parametrize(
    ("card", "load", "sla"),
    [
        ("rtx-4090", f"{EVEN}, concurrency: 64", "{tpot_p95: 25ms}"),
        ("a100-80", f"{EVEN}, concurrency: 64", "{ttft_p95: 800ms}"),
        ("h200-sxm", f"{SPREAD}, concurrency: 64", "{tpot_p95: 8ms}"),
    ],
)
def test_so_many_in_flight_meet_the_limits_and_a_third_more_do_not(card: str, load: str, sla: str) -> None:
    case = served(card, load, sla)
    limits, at, flight = latencies(case.deploy.sla), loads(case), case.prediction.capacity_in_flight
    assert flight is not None
    most = int(flight.value)
    assert case.prediction.capacity.value == pytest.approx(at.rate(most))
    assert meets(at.serve(int(0.95 * most)), limits)
    assert not meets(at.serve(most * 4 / 3 + 1), limits)


@settings(max_examples=25, deadline=None)
@given(
    limits=st.lists(st.floats(0.05, 20), min_size=2, max_size=2),
    name=st.sampled_from(["ttft_p95", "tpot_p95", "e2e_p95"]),
    load=st.sampled_from(["request_rate: 1", "request_rate: 3.5", "concurrency: 4", "concurrency: 48"]),
    beside=st.sampled_from(["", ", ttft_p95: 900ms", ", e2e_p95: 12s"]),
)
def test_a_tighter_limit_never_gives_a_larger_capacity(limits: list[float], name: str, load: str, beside: str) -> None:
    scale, beside = 0.02 if name == "tpot_p95" else 1, "" if name in beside else beside
    tight, loose = (
        served("rtx-4090", f"{EVEN}, {load}", f"{{{name}: {limit * scale:.6f}s{beside}}}").prediction.capacity
        for limit in sorted(limits)
    )
    assert tight.value <= loose.value


@pytest.mark.parametrize("sla", ["{tpot_p95: 1ms}", "{ttft_p95: 2ms}"])
def test_where_a_single_request_misses_there_is_no_capacity(sla: str) -> None:
    for load in ("request_rate: 1", "concurrency: 4"):
        prediction = served("rtx-4090", f"{EVEN}, {load}", sla).prediction
        assert prediction.capacity.high == 0
        assert prediction.capacity_in_flight is None or prediction.capacity_in_flight.high == 0


def test_without_limits_on_latency_it_is_what_the_engine_answers_at_most() -> None:
    case = served("a100-80", f"{EVEN}, request_rate: 4", "{requests_per_second: 2}")
    assert case.prediction.capacity.value == pytest.approx(loads(case).highest)


def test_replicas_multiply_it() -> None:
    one = served("rtx-4090", f"{EVEN}, request_rate: 2", "{tpot_p95: 50ms}").prediction.capacity
    facts = facts_of(cards=facts_of().devices * 2)
    two = case_of(
        facts,
        hardware="{gpu: rtx-4090, count: 2}",
        workload=f"{{{EVEN}, request_rate: 4, max_context: 8192}}",
        sla="{tpot_p95: 50ms}",
    )
    assert two.prediction.capacity.value == pytest.approx(2 * one.value)


@pytest.mark.parametrize("load", ["request_rate: 0.8", "request_rate: 2", "request_rate: 9", "concurrency: 24"])
def test_at_most_three_runs_are_made_for_it(load: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the stated load's own, and those of the ends of memory's band where it is felt."""
    runs, made = counted(monkeypatch), []
    for sla in ("{}", "{ttft_p95: 700ms, tpot_p95: 30ms}"):
        case = served("rtx-4090", f"{EVEN}, {load}", sla)
        runs.clear()
        predict(case.deploy, case.facts, case.choices)
        made.append(len(runs))
    without, inside = made
    assert 1 <= without <= 3
    assert without < inside <= without + 3
