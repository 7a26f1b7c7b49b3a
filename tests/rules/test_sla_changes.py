"""What would meet a limit: computed, from the cheapest, with the line of what the user wrote, in few simulations."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from configured import GIB, HOST, QWEN_7B, SMOLLM2, card, case_of, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import counted

from deployc.cost.prediction import setting, speed
from deployc.diagnostics import Diagnostic
from deployc.facts.gpu_profile import cards
from deployc.rules import judge, sla
from deployc.rules.case import Case
from deployc.rules.changes.free import free
from deployc.rules.changes.search import RUNS, Tried, options, promising
from deployc.types.facts import Facts

KNOWN = {one.name: one for one in cards()}
LOAD = "{input_tokens: 1500, output_tokens: 256, %s, max_context: 8192}"


def on(*names: str, **more: Any) -> Facts:
    """Named cards of the catalogue, and all others to advise."""
    return replace(facts_of(cards=tuple(KNOWN[name] for name in names), **more), known_cards=cards())


def case_on(*names: str, load: str = "concurrency: 8", **sections: str) -> Case:
    hardware = f"{{gpu: {names[0]}, count: {len(names)}}}"
    return case_of(on(*names), **{"hardware": hardware, "workload": LOAD % load} | sections)


def said(case: Case) -> dict[str, Diagnostic]:
    return {d.code: d for d in sla.limits(case)}


def test_changes_come_from_the_cheapest_each_with_its_figure() -> None:
    case = case_on("rtx-4090", load="concurrency: 32", sla="{tpot_p95: 30ms}")
    parts = said(case)["DC402"].fix.split("; or ")
    eight = next(part for part in parts if "set quantization.weights: fp8 (" in part)
    assert re.fullmatch(r".* \(tpot_p95 [0-9.]+ ms, [0-9.]+ ms to [0-9.]+ ms\)", eight)
    assert "max-num-seqs" in parts[0]
    assert parts[-1].startswith("send at most ")
    assert len(parts) <= RUNS + 1


def test_the_figure_of_a_change_is_what_the_model_predicts_under_it() -> None:
    case = case_on("rtx-4090", load="concurrency: 32", sla="{tpot_p95: 30ms}")
    fp8 = case_on(
        "rtx-4090", load="concurrency: 32", sla="{tpot_p95: 30ms}", quantization="{weights: fp8}"
    ).prediction.speed.tpot_p95
    assert f"fp8 (tpot_p95 {fp8.value * 1000:.1f} ms," in said(case)["DC402"].fix


def test_a_change_that_only_may_meet_the_limit_says_perhaps() -> None:
    case = case_on("rtx-4090", sla="{tpot_p95: 15ms}")
    parts = said(case)["DC402"].fix.split("; or ")
    for part in parts:
        value, low, high = (float(n) for n in re.findall(r"([0-9.]+) ms", part)[:3])
        assert low <= value <= 15
        assert part.startswith("perhaps ") == (high > 15)


def test_a_value_of_the_file_is_named_with_its_line() -> None:
    engine = "{version: 0.32.0, args: {max-num-seqs: 256}}"
    case = case_on("a100-80", load="request_rate: 6", sla="{tpot_p95: 40ms}", engine=engine)
    at = case.deploy.at(("engine", "args", "max-num-seqs"))
    assert at is not None
    words = [option.words for _, every in options(case) for option in every]
    assert any(re.fullmatch(rf"set .*max-num-seqs: \d+\}} instead of 256 \(deploy.yaml:{at.line}\)", w) for w in words)
    two = case_on("a100-80", load="request_rate: 10")
    assert re.search(r"hardware.count: 2 instead of 1 \(deploy.yaml:\d+\)", said(two)["DC410"].fix)


def test_four_engines_are_advised_where_one_waits_for_its_links() -> None:
    case = case_on(
        *["rtx-4090d"] * 4, load="concurrency: 128", sla="{tpot_p95: 70ms}",
        engine="{version: 0.32.0, parallel: {tensor: 4}}",
    )  # fmt: skip
    first = said(case)["DC402"].fix.partition("; or ")[0]
    assert re.search(r"engine.parallel.tensor: 1 instead of 4 \(deploy.yaml:\d+\), on the same cards", first)


def test_larger_engines_are_advised_with_nvlink_alone() -> None:
    def tensor(name: str) -> bool:
        case = case_on(name, load="request_rate: 12")
        return any(o.setting.choices.tensor_parallel_size.value > 1 for _, every in options(case) for o in every)

    assert tensor("a100-80")
    assert not tensor("l40s")


@pytest.mark.parametrize(
    ("names", "load", "limits"),
    [
        (["rtx-4090"], "concurrency: 32", "{ttft_p95: 800ms, tpot_p95: 30ms, e2e_p95: 4s, requests_per_second: 20}"),
        (["a100-80"], "request_rate: 10", "{ttft_p95: 800ms, tpot_p95: 40ms}"),
        (["h100-sxm"] * 2, "request_rate: 90", "{ttft_p95: 200ms, tokens_per_second: 30000}"),
        (["t4"], "concurrency: 4", "{tpot_p95: 1ms}"),
    ],
)
def test_one_plan_makes_at_most_eight_simulations_of_changes(
    names: list[str], load: str, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_on(*names, load=load, sla=limits)
    runs = counted(monkeypatch)
    assert list(sla.limits(case))
    assert len(runs) <= RUNS <= 8


def test_where_all_limits_are_met_nothing_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_on("rtx-4090", sla="{ttft_p95: 1min, tpot_p95: 1s}")
    runs = counted(monkeypatch)
    assert not list(sla.limits(case))
    assert not runs


def test_a_load_above_capacity_names_what_would_carry_it_without_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_on("a100-80", load="request_rate: 10")
    runs = counted(monkeypatch)
    found = said(case)["DC410"]
    assert not runs
    assert "The queue grows without bound" in found.detail
    assert "no time to first token can be named" in found.detail
    answers = [float(n) for n in re.findall(r"answers ([0-9.]+) requests/s", found.fix)]
    assert answers
    assert min(answers) >= 10
    least = re.search(r"send at most ([0-9.]+) requests/s", found.fix)
    assert least is not None
    assert float(least[1]) == pytest.approx(case.prediction.speed.requests_per_second.low, rel=0.01)


def test_what_is_advised_against_an_overload_carries_it() -> None:
    case = case_on("a100-80", load="request_rate: 10")
    for option in promising(case, {"requests_per_second": (10, False)}, ["requests_per_second"]):
        answered = speed(option.setting)
        assert answered.requests_per_second.value == pytest.approx(10), option.words
        assert answered.ttft_p95.value < 60, option.words


def test_where_nothing_meets_a_limit_the_nearest_is_named_and_by_how_much() -> None:
    case = case_on("rtx-4090", sla="{tpot_p95: 1ms}")
    found = said(case)["DC402"]
    assert found.fix.startswith("no single change surely meets it; nearest comes: ")
    assert re.search(r", [0-9.]+ ms from it\)", found.fix)
    assert "Reading weights and KV for one token takes" in found.detail
    assert "Only fewer bytes or more bandwidth change that." in found.detail


def test_a_first_token_sooner_than_the_prompt_can_be_multiplied_is_said_to_be_impossible() -> None:
    """1,500 tokens x 2 x 6.53e9 weights of the layers / 165e12 = 119 ms on an RTX 4090."""
    sooner = case_of(sla="{ttft_p95: 100ms}", workload=LOAD % "concurrency: 1")
    found = re.search(
        r"The products of the mean prompt take (\d+) ms at the card's full rate", said(sooner)["DC401"].detail
    )
    assert found is not None
    assert 115 < float(found[1]) < 122
    later = case_of(sla="{ttft_p95: 130ms}", workload=LOAD % "concurrency: 1")
    assert "products" not in said(later)["DC401"].detail


def test_a_change_that_breaks_another_limit_says_so() -> None:
    """Few sequences at once answer each fast, and let the others wait."""
    case = case_on("rtx-4090", load="concurrency: 32")
    met = case.prediction.speed.ttft_p95.high * 1.01
    case = case_on("rtx-4090", load="concurrency: 32", sla=f"{{tpot_p95: 20ms, ttft_p95: {met:.3f}s}}")
    fewer = next(option for option in free(case) if "max-num-seqs" in option.words)
    slow = speed(fewer.setting).ttft_p95
    assert slow.value > case.prediction.speed.ttft_p95.value
    text = sla.change(case, "tpot_p95", Tried(fewer, speed(fewer.setting)))
    assert text.endswith("; but ttft_p95 would miss)") == (slow.low > met)
    assert slow.low > met


def test_no_advice_where_the_engine_does_not_start() -> None:
    small = facts_of(cards=(card("rtx-3070", 7.6 * GIB, 4.5e11, (8, 6), 40e12),))
    case = case_of(small, sla="{tpot_p95: 1ms}")
    assert said(case)["DC402"].fix == "fewer requests in flight, more cards, or a faster one"


def test_an_eager_engine_and_an_unmerged_adapter_are_mended_first() -> None:
    case = case_on("rtx-4090", sla="{tpot_p95: 16ms}", engine="{version: 0.32.0, args: {enforce-eager: true}}",
                   workload=LOAD % "concurrency: 1")  # fmt: skip
    words = [option.words for _, every in options(case) for option in every]
    assert words[0].startswith("let CUDA graphs be captured: engine.args: {enforce-eager: false} instead of true")


def test_options_of_one_configuration_differ_from_it_and_start() -> None:
    case = case_on("a100-80", load="request_rate: 6", sla="{tpot_p95: 20ms}")
    here = setting(case.deploy, case.facts, case.choices)
    made = [option for _, every in options(case) for option in every]
    assert len({option.words for option in made}) == len(made)
    for option in made:
        assert (option.setting.choices, option.setting.facts.devices) != (here.choices, here.facts.devices)
        assert option.setting.bill.kv_cache.low > 0


def test_on_a_cpu_no_card_is_advised() -> None:
    facts = replace(facts_of(SMOLLM2, (HOST,)), known_cards=cards())
    case = case_of(facts, hardware="{gpu: cpu, host_memory: 8GiB}", sla="{tpot_p95: 1us}")
    assert {option.price for _, every in options(case) for option in every} <= {"free", "format"}
    assert "card" not in said(case)["DC402"].fix.partition("send")[0].replace("cards, or", "")


def test_a_limit_that_is_met_in_all_its_band_says_nothing() -> None:
    facts = facts_of(QWEN_7B, (KNOWN["h200-sxm"],))
    case = case_of(facts, hardware="{gpu: h200-sxm}", sla="{tpot_p95: 1s}")
    assert not {d.code for d in judge(case.deploy, case.facts, case.choices, case.prediction)} & {"DC402"}


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(["t4", "rtx-4090", "a100-40-pcie", "h20", "b200"]),
    load=st.sampled_from(
        ["concurrency: 1", "concurrency: 40", "request_rate: 0.05", "request_rate: 3", "request_rate: 60"]
    ),
    output=st.sampled_from([1, 2, 300]),
    limits=st.dictionaries(st.sampled_from(list(sla.CODES)), st.sampled_from([0.01, 0.5, 20]), max_size=4),
)
def test_whatever_is_asked_each_finding_says_what_to_do(
    name: str, load: str, output: int, limits: dict[str, float]
) -> None:
    stated = ", ".join(f"{key}: {limit}{'s' if key in sla.UPPER else ''}" for key, limit in limits.items())
    workload = f"{{input_tokens: 900, output_tokens: {output}, {load}, max_context: 8192}}"
    with pytest.MonkeyPatch.context() as patch:
        case = case_on(name, sla=f"{{{stated}}}", workload=workload)
        runs = counted(patch)
        found = list(sla.limits(case))
    assert all(diagnostic.fix for diagnostic in found)
    assert len(runs) <= RUNS


@pytest.mark.parametrize(
    ("names", "load", "limits"),
    [
        (["h200-sxm"], "concurrency: 1", "{tpot_p95: 0.01ms}"),
        (["b200"], "concurrency: 1", "{tpot_p95: 0.01ms, ttft_p95: 1ms}"),
        (["rtx-4090"], "request_rate: 0.1", "{requests_per_second: 5}"),
        (["l4"], "request_rate: 0.1", "{requests_per_second: 5, tpot_p95: 1ms, e2e_p95: 1ms}"),
    ],
)
def test_what_comes_nearest_is_nearer_than_the_file(names: list[str], load: str, limits: str) -> None:
    case = case_on(*names, load=load, sla=limits)
    for line in sla.lines(case.deploy, case.prediction):
        fix = said(case)[sla.CODES[line.name][0]].fix if line.verdict != "meets" else ""
        if "nearest comes" in fix:
            shown = re.search(rf"\({line.name} ([0-9.,]+) ?(ms|s|min|/s)", fix)
            assert shown is not None
            figure = float(shown[1].replace(",", "")) * {"ms": 0.001, "s": 1, "min": 60, "/s": 1}[shown[2]]
            now = line.predicted.value
            assert figure < now if line.name in sla.UPPER else figure > now
        elif load.startswith("request_rate") and line.name == "requests_per_second":
            assert fix == "no single change meets it, or brings it nearer"  # no more are answered than come


def test_only_keys_that_change_are_named() -> None:
    case = case_on("rtx-4090", load="request_rate: 5", engine="{version: 0.32.0, parallel: {tensor: 1, replicas: 1}}")
    words = [option.words for _, every in options(case) for option in every]
    assert any("engine.parallel.replicas: 2 instead of 1" in text for text in words)
    assert not any(re.search(r": (\S+) instead of \1 ", text) for text in words)
