"""What a diagnostic advises: the figure in it must be one with which the file then passes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from configured import GIB, card, case_of, codes, facts_of

from deployc.diagnostics import Diagnostic
from deployc.rules import judge
from deployc.types.facts import Facts


def said(facts: Facts | None = None, **sections: str) -> dict[str, Diagnostic]:
    """Code -> the first diagnostic of it."""
    case = case_of(facts, **sections)
    found: dict[str, Diagnostic] = {}
    for diagnostic in judge(case.deploy, case.facts, case.choices, case.prediction):
        found.setdefault(diagnostic.code, diagnostic)
    return found


def test_a_refusal_for_a_low_utilization_says_the_least_that_does() -> None:
    found = said(engine="{version: 0.32.0, gpu_memory_utilization: 0.5}")["DC300"]
    least = re.search(r"gpu_memory_utilization to at least (0\.\d+)", found.fix)
    assert least is not None
    assert set(codes(engine=f"{{version: 0.32.0, gpu_memory_utilization: {least[1]}}}")) <= {"DC315"}
    lower = float(least[1]) - 0.02
    assert set(codes(engine=f"{{version: 0.32.0, gpu_memory_utilization: {lower:.2f}}}")) - {"DC315"}


def test_a_model_too_large_for_the_card_says_which_card_would_do() -> None:
    found = said(facts_of(cards=(card("rtx-3070", 7.7 * GIB),)))["DC300"]
    size = re.search(r"a card with at least ([0-9.]+) GiB", found.fix)
    assert size is not None
    larger = facts_of(cards=(card("odd", (float(size[1]) + 0.1) * GIB),))
    assert codes(larger, workload="{input_tokens: 1500, output_tokens: 256, concurrency: 4, max_context: 8192}") == {}


def test_fp8_kv_is_no_remedy_where_the_card_may_not_have_it() -> None:
    load = "{input_tokens: 6000, output_tokens: 256, concurrency: 64}"
    assert "kv_cache: fp8" in said(workload=load)["DC306"].fix
    ampere = facts_of(cards=(card("rtx-3090", capability=(8, 6)),))
    assert "kv_cache: fp8" not in said(ampere, workload=load)["DC306"].fix


def test_a_gone_flag_says_since_when_and_what_instead() -> None:
    found = said(engine="{version: 0.32.0, args: {rope_scaling: x}}")["DC502"]
    assert "0.11.1" in found.detail
    assert "model.context" in found.fix


def test_a_deprecated_flag_is_said_with_the_engines_own_words() -> None:
    facts = facts_of()
    old = replace(facts.engine.flags["seed"], deprecated="it has no effect")
    facts = replace(facts, engine=replace(facts.engine, flags={**facts.engine.flags, "seed": old}))
    assert "it has no effect" in said(facts, engine="{version: 0.32.0, args: {seed: 1}}")["DC505"].detail
    assert "DC505" not in codes(engine="{version: 0.32.0, args: {seed: 1}}")


def test_what_a_flag_sets_is_pointed_at_where_the_flag_stands() -> None:
    workload = "{input_tokens: 1500, output_tokens: 256, concurrency: 8}"
    engine = "{version: 0.32.0, args: {max-model-len: 65536, gpu-memory-utilization: 1.0}}"
    found = said(workload=workload, engine=engine)
    excerpts = {code: d.at.excerpt[d.at.column - 1 :] for code, d in found.items() if d.at}
    assert excerpts["DC520"].startswith("65536")
    assert excerpts["DC303"].startswith("1.0")
    few = said(workload=workload, engine="{version: 0.32.0, args: {max-num-seqs: 4}}")["DC540"].at
    assert few is not None
    assert few.excerpt[few.column - 1 :].startswith("4")


def test_waiting_requests_are_no_reason_to_buy_a_card_for_one_request() -> None:
    found = said(workload="{input_tokens: 6000, output_tokens: 256, concurrency: 64}")["DC306"]
    assert "a card with at least" not in found.fix


def test_unequal_cards_are_advised_an_engine_each_only_where_the_smallest_holds_one() -> None:
    spread = "{version: 0.32.0, parallel: {tensor: 2}}"
    small = facts_of(cards=(card(), card("rtx-3070", 8 * GIB)))
    large = facts_of(cards=(card(), card("rtx-4090-48g", 47 * GIB)))
    assert "replicas: auto" not in said(small, engine=spread)["DC532"].fix
    assert "replicas: auto" in said(large, engine=spread)["DC532"].fix


def test_what_a_remedy_leaves_is_of_a_card_where_there_are_several() -> None:
    long = {"model": "{source: org/model, context: {rope: yarn, factor: 64}}",
            "workload": "{input_tokens: 1500, output_tokens: 256, concurrency: 4, max_context: 2000000}"}  # fmt: skip
    four = facts_of(cards=(card(),) * 4)
    spread = said(four, engine="{version: 0.32.0, parallel: {tensor: 4}}", **long)["DC302"].fix
    assert re.search(r"kv_cache: fp8 \([0-9.]+ GiB a card for [0-9,]+ KV tokens\)", spread)
    alone = said(workload=long["workload"].replace("2000000", "200000"), model=long["model"])["DC302"].fix
    assert "kv_cache: fp8 (" in alone
    assert " a card for" not in alone.partition("spread")[0]


def test_waiting_requests_are_told_how_many_more_would_run() -> None:
    """At 12,256 tokens of 56 KiB a request is 670 MiB: 9 in 6 GiB, twice as many with keys and values of one byte."""
    found = said(workload="{input_tokens: 12000, output_tokens: 256, concurrency: 128}")["DC306"]
    holds = re.search(r"holds (\d+) of mean length", found.detail)
    more = re.search(r"fp8 \(room for (\d+) of mean length\)", found.fix)
    assert holds is not None
    assert more is not None
    assert int(holds[1]) in (8, 9)
    assert int(more[1]) in (2 * int(holds[1]), 2 * int(holds[1]) + 1)


def test_a_limit_below_what_the_memory_can_read_says_so() -> None:
    bound = "Reading weights and KV for one token takes 14.1 ms at the card's full bandwidth."
    assert bound in said(sla="{tpot_p95: 5ms}")["DC402"].detail
    assert bound not in said(sla="{tpot_p95: 15ms}")["DC402"].detail


@pytest.mark.parametrize(
    ("capability", "advised"), [((7, 0), None), ((8, 6), "int8"), ((8, 9), "fp8"), ((9, 0), "fp8"), ((12, 0), "fp8")]
)
def test_the_8_bit_type_that_a_card_multiplies_is_advised(capability: tuple[int, int], advised: str | None) -> None:
    facts = facts_of(cards=(card("odd", 31 * GIB, capability=capability),))
    found = set(re.findall("quantization.weights: ([a-z0-9-]+)", said(facts, sla="{tpot_p95: 5ms}")["DC402"].fix))
    assert found == ({advised} if advised else set())


def test_a_percentile_is_never_predicted_below_what_it_holds() -> None:
    """The 95th is no shorter than the median, a whole request no shorter than its first token: at both ends."""
    for load in ("concurrency: 1", "concurrency: 8", "concurrency: 64", "request_rate: 0.5"):
        speed = case_of(
            workload=f"{{input_tokens: 1500, output_tokens: 2, {load}, max_context: 8192}}"
        ).prediction.speed
        for less, more in (
            (speed.ttft_p50, speed.ttft_p95),
            (speed.tpot_p50, speed.tpot_p95),
            (speed.ttft_p95, speed.e2e_p95),
        ):
            assert less.low <= more.low, load
            assert less.value <= more.value, load
            assert less.high <= more.high, load
