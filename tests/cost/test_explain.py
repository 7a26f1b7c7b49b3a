"""What people ask about memory: each answer by hand, and as the rest of the model would judge it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import A100, GIB, HOST, QWEN_7B, SMOLLM2, card, case_of, codes, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from weighing import QWEN3_30B

from deployc.cost.capability import reads_fp8_kv
from deployc.cost.explain import explain
from deployc.cost.kv_cache import layout
from deployc.facts.gpu_profile import cards as known_cards
from deployc.rules.case import Case
from deployc.types.explanation import Explanation
from deployc.types.facts import Facts

BLOCK = 917_504
"""Bytes of 16 tokens of Qwen2.5-7B: 28 layers x 4 KV heads x 256 x 2 B x 16."""


def answers(facts: Facts | None = None, **sections: str) -> tuple[Explanation, Case]:
    case = case_of(facts, **sections)
    return explain(case.deploy, case.facts, case.choices, case.prediction), case


def knowing(facts: Facts) -> Facts:
    return replace(facts, known_cards=known_cards())


def test_what_a_load_holds_is_whole_blocks_of_each_request() -> None:
    """8 requests of 1,756 tokens: 110 blocks each (1,760 tokens), and the null block: 881 blocks."""
    found, _ = answers()
    assert found.in_flight.value == 8
    assert found.kv_cache_mean.value == found.kv_cache_p95.value == 881 * BLOCK


def test_a_prefix_that_requests_share_is_held_once() -> None:
    """Of 1,756 tokens 1,000 are shared: 57,344,000 B once, 8 x (110 blocks less that), and the null block."""
    shared = "{input_tokens: 1500, output_tokens: 256, concurrency: 8, max_context: 8192, shared_prefix_tokens: 1000}"
    found, _ = answers(workload=shared)
    assert found.kv_cache_mean.value == 57_344_000 + 8 * (110 * BLOCK - 57_344_000) + BLOCK


def test_long_requests_hold_more_than_mean_ones() -> None:
    """4,000 + 256 tokens at the 95th percentile: 266 blocks; 1,756 at the mean: 110."""
    spread = "{input_tokens: {mean: 1500, p95: 4000}, output_tokens: 256, concurrency: 8, max_context: 8192}"
    found, _ = answers(workload=spread)
    assert (found.kv_cache_mean.value, found.kv_cache_p95.value) == (881 * BLOCK, (8 * 266 + 1) * BLOCK)


def test_the_share_that_is_needed_suffices_and_less_does_not_surely() -> None:
    engine = "{version: 0.32.0, gpu_memory_utilization: %s}"
    found, case = answers()
    bill = case.prediction.memory
    spent = bill.budget.value - bill.kv_cache.low
    assert found.needed.high == spent + 881 * BLOCK
    assert found.needed_for == "load"
    assert found.gpu_memory_utilization is not None
    assert (
        found.needed.high
        <= found.gpu_memory_utilization * bill.total.value
        < found.needed.high + bill.total.value / 100
    )
    assert set(codes(engine=engine % found.gpu_memory_utilization)) <= {"DC315"}  # a note: less than the engine's own
    assert set(codes(engine=engine % (found.gpu_memory_utilization - 0.05))) - {"DC315"}


def test_one_request_of_full_length_may_need_more_than_the_load() -> None:
    """Two requests of 1,756 tokens hold 221 blocks; one of 8,192, which the start needs, 512 and the null one."""
    found, case = answers(workload="{input_tokens: 1500, output_tokens: 256, concurrency: 2, max_context: 8192}")
    bill = case.prediction.memory
    assert found.needed_for == "max_model_len"
    assert found.needed.high == bill.budget.value - bill.kv_cache.low + 513 * BLOCK
    several, _ = answers(
        workload="{input_tokens: 1500, output_tokens: 256, concurrency: 2, max_context: 8192}",
        sla="{full_length_requests: 4}",
    )
    assert several.needed.high == bill.budget.value - bill.kv_cache.low + (4 * 512 + 1) * BLOCK


def test_the_longest_request_is_one_that_the_rules_let_pass() -> None:
    model = "{source: org/model, context: {rope: yarn, factor: 8}}"
    load = "{input_tokens: 1500, output_tokens: 256, concurrency: 4, max_context: %d}"
    found, _ = answers(model=model, workload=load % 8192)
    assert found.positions == 8 * 32768
    assert "DC302" not in codes(model=model, workload=load % found.longest.low)
    assert codes(model=model, workload=load % (found.longest.low + 16))["DC302"] == "warning"
    assert found.longest_fp8 is not None
    assert found.longest_fp8.value / found.longest.value == pytest.approx(2, rel=0.01)


def test_the_smallest_card_holds_the_load_and_no_smaller_one_does() -> None:
    found, _ = answers(knowing(facts_of()))
    assert found.smallest_card == "l4"
    sizes = {one.name: one for one in known_cards()}

    def outcome(name: str) -> dict[str, str]:
        return codes(facts_of(cards=(sizes[name],)))

    assert not outcome("l4").keys() & {"DC300", "DC301", "DC302", "DC303", "DC306"}
    assert outcome("t4")["DC300"] == "error"  # the next smaller one with kernels
    heavy, _ = answers(
        knowing(facts_of()), workload="{input_tokens: 6000, output_tokens: 256, concurrency: 32, max_context: 8192}"
    )
    # 32 x 391 blocks are 10.7 GiB beside 15.9: more than cards of 24 GB have
    assert heavy.smallest_card == "rtx-5090"


def test_no_card_is_small_enough_for_what_none_holds() -> None:
    enormous = QWEN_7B | {"hidden_size": 16384, "num_attention_heads": 128, "intermediate_size": 65536,
                          "num_hidden_layers": 120, "num_key_value_heads": 8}  # fmt: skip
    found, _ = answers(knowing(facts_of(enormous)))
    assert (found.smallest_card, found.smallest_card_memory) == ("", 0)
    assert found.gpu_memory_utilization is None


def test_the_parts_of_the_weights_are_those_of_the_bill() -> None:
    found, case = answers()
    assert found.weights[0].name == "parameters"
    assert found.weights[0].bytes == 7_615_616_512 * 2
    assert sum(share.bytes for share in found.weights) == case.prediction.memory.weights.value


def test_the_peak_comes_first_and_is_near_that_of_the_bill() -> None:
    found, case = answers()
    sizes = [share.bytes for share in found.activations]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] + found.activations_kept == pytest.approx(case.prediction.memory.activations.value)
    assert 0 <= found.activations_kept < 0.1 * GIB


def test_requests_of_an_open_loop_are_counted_by_littles_law() -> None:
    load = "{input_tokens: 1500, output_tokens: 256, request_rate: 0.5, max_context: 8192}"
    found, case = answers(workload=load)
    speed = case.prediction.speed
    seconds = speed.ttft_p50.value + 256 * speed.tpot_p50.value
    assert found.in_flight.value == pytest.approx(max(1, 0.5 * seconds))
    flooded, case = answers(workload=load.replace("0.5", "900"))
    assert flooded.in_flight.value == case.choices.max_num_seqs.value


def test_the_cpu_engine_has_no_share_and_no_card() -> None:
    found, _ = answers(facts_of(SMOLLM2, (HOST,)), workload="{input_tokens: 64, output_tokens: 32, concurrency: 2}")
    assert found.gpu_memory_utilization is None
    assert (found.smallest_card, found.activations, found.longest_fp8) == ("", (), None)


@pytest.mark.parametrize(
    ("kind", "version", "capability", "reads"),
    [
        ("full", "0.33.0", (8, 9), True),
        ("full", "0.33.0", (8, 6), False),
        ("mla", "0.17.1", (8, 9), False),  # Triton's latent attention had no fp8, and FlashMLA is for 9.0 and 10.x
        ("mla", "0.17.1", (9, 0), True),
        ("mla", "0.18.1", (8, 9), True),
        ("mla", "0.18.1", (8, 0), False),
        ("state", "0.33.0", (9, 0), False),  # nothing to read
    ],
)
def test_which_cards_read_an_fp8_cache(kind: Any, version: str, capability: tuple[int, int], reads: bool) -> None:
    facts = facts_of(cards=(card("odd", capability=capability),), version=version)
    arch = facts.model.architecture
    caches = tuple(replace(one, kind=kind) for one in arch.caches)
    facts = replace(facts, model=replace(facts.model, architecture=replace(arch, caches=caches)))
    assert reads_fp8_kv(facts) is reads


def test_tokens_are_capacity_only_where_all_layers_keep_all_tokens() -> None:
    found, case = answers()
    assert found.tokens_are_capacity
    assert layout(case.facts, case.choices).uniform
    arch = case.facts.model.architecture
    one = arch.caches[0]
    mixed = (replace(one, layers=one.layers[:14]), replace(one, layers=one.layers[14:], kind="sliding", window=512))
    facts = replace(case.facts, model=replace(case.facts.model, architecture=replace(arch, caches=mixed)))
    assert not answers(facts)[0].tokens_are_capacity


@given(
    flight=st.integers(1, 200),
    prompt=st.integers(16, 6000),
    answer=st.integers(1, 1000),
    context=st.sampled_from([8192, 16384, 32768]),
)
@settings(max_examples=25, deadline=None)
def test_more_of_anything_never_needs_less(flight: int, prompt: int, answer: int, context: int) -> None:
    """More requests, longer ones or a longer context: no smaller budget, no fewer bytes held, no smaller card."""

    def asked(flight: int, prompt: int, context: int) -> Explanation:
        load = f"{{input_tokens: {prompt}, output_tokens: {answer}, concurrency: {flight}, max_context: {context}}}"
        return answers(knowing(facts_of(cards=(A100,))), workload=load)[0]

    least = asked(flight, prompt, context)
    for more in (
        asked(flight + 20, prompt, context),
        asked(flight, prompt + 500, context),
        asked(flight, prompt, 32768),
    ):
        assert more.needed.high >= least.needed.high
        assert more.kv_cache_mean.value >= least.kv_cache_mean.value
        assert (more.smallest_card_memory or 1e15) >= (least.smallest_card_memory or 1e15)
    assert least.needed.low <= least.needed.value <= least.needed.high


def test_prompts_take_two_operations_a_weight_and_token() -> None:
    """Linear layers of Qwen2.5-7B: 28 x (3,584 x 4,608 + 3,584^2 + 3 x 3,584 x 18,944) weights."""
    weights = 28 * (3584 * 4608 + 3584**2 + 3 * 3584 * 18944)
    rate = {"workload": "{input_tokens: 1500, output_tokens: 256, request_rate: 10, max_context: 8192}"}
    alone = answers(facts_of(cards=(A100,)), **rate)[0].arithmetic
    assert alone is not None
    assert alone.weights == weights
    assert alone.needed.low == alone.needed.high == 10 * 1500 * 2 * weights
    assert alone.needed.value / alone.peak == pytest.approx(0.6275, abs=1e-3)
    for parallel in ("{tensor: 4}", "{tensor: 1, replicas: 4}", "{tensor: 2, replicas: 2}"):
        spread = answers(facts_of(cards=(A100,) * 4), **rate, engine=f"{{version: 0.32.0, parallel: {parallel}}}")[
            0
        ].arithmetic
        assert spread is not None
        assert spread.cards == 4
        assert spread.needed.value == pytest.approx(alone.needed.value / 4)


def test_a_prefix_in_the_cache_is_not_computed_and_int8_has_its_own_peak() -> None:
    shared = "{input_tokens: 1500, output_tokens: 256, request_rate: 2, shared_prefix_tokens: 1000, max_context: 8192}"
    found = answers(facts_of(cards=(A100,)), workload=shared, quantization="{weights: int8}")[0].arithmetic
    assert found is not None
    assert found.tokens == 500
    assert found.peak == 624e12


def test_of_experts_those_count_that_a_token_is_sent_to() -> None:
    """Qwen3-30B-A3B: 3.3 billion of 30.5 are active, some 0.6 of them embedding and output layer."""
    found = answers(facts_of(QWEN3_30B, (A100,)))[0].arithmetic
    assert found is not None
    assert 2.6e9 < found.weights < 3.0e9


def test_nothing_is_said_of_arithmetic_where_the_peak_is_not_known() -> None:
    assert answers(facts_of(SMOLLM2, (HOST,)))[0].arithmetic is None
    assert answers(facts_of(cards=(replace(card(), flops={}),)))[0].arithmetic is None
