"""What a verdict about memory advises: with it the file passes, and a figure says what it gives."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from configured import GIB, H200, QWEN_05B, QWEN_7B, card, case_of, codes, facts_of

from deployc.facts.gpu_profile import cards as known_cards
from deployc.rules import judge
from deployc.rules.remedies import eager
from deployc.types.facts import Facts
from deployc.types.runner import RunnerRule

VERDICTS = {"DC300", "DC301", "DC302"}
ENGINE = "{version: %s, args: {%s}}"
WIDE = QWEN_7B | {"num_attention_heads": 7, "num_key_value_heads": 7}
"""Seven heads divide over one card or seven."""


def fix(facts: Facts, **sections: str) -> str:
    """What the one verdict about memory advises."""
    case = case_of(facts, **sections)
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    (verdict,) = (d for d in found if d.code in VERDICTS)
    return verdict.fix


def advised(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def test_fewer_sequences_shrink_sampler_and_graphs() -> None:
    """0.19 profiles 1,024 x 151,936 logits in 2 + 3.125 x 4 B each: 2.1 GiB beside 0.93 GiB of weights."""
    facts = facts_of(QWEN_05B, (card("odd", 3.4 * GIB),), version="0.19.0")
    facts = replace(facts, engine=replace(facts.engine, model_runners=(RunnerRule("V1"),)))
    many = ENGINE % ("0.19.0", "max-num-seqs: %s, max-num-batched-tokens: 2048")
    count = int(advised(r"max-num-seqs: (\d+)\} \([0-9.]+ [MG]iB for", fix(facts, engine=many % 1024)))
    assert 1 <= count < 1024
    assert not codes(facts, engine=many % count).keys() & VERDICTS
    assert codes(facts, engine=many % (2 * count)).keys() & VERDICTS  # the mildest that surely does


def test_fewer_tokens_a_step_shrink_the_widest_layer() -> None:
    """16,384 tokens x (3 x 18,944 + 4 x 3,584) x 2 B are 2.2 GiB; half of them 1.1."""
    facts = facts_of(cards=(card("odd", 18.3 * GIB, capability=(12, 0)),))
    args = ENGINE % ("0.32.0", "max-num-seqs: 4, max-num-batched-tokens: %s")
    tokens = int(advised(r"max-num-batched-tokens: (\d+)\} \([0-9.]+ [MG]iB for", fix(facts, engine=args % 16384)))
    assert 512 <= tokens < 16384
    assert not codes(facts, engine=args % tokens).keys() & VERDICTS
    assert codes(facts, engine=args % (2 * tokens)).keys() & VERDICTS


def test_eager_mode_is_named_where_nothing_else_helps_and_with_its_price() -> None:
    """Without a compile cache the embedding table is not held twice: 152,064 x 3,584 x 2 B = 1.0 GiB."""
    facts = facts_of(WIDE, (card("odd", 18.5 * GIB, 5.04e11, capability=(12, 0)),))
    sections = {
        "quantization": "{kv_cache: fp8, weights: fp8}",
        "engine": ENGINE % ("0.32.0", "max-num-seqs: 1, max-num-batched-tokens: 512"),
        "workload": "{input_tokens: 500, output_tokens: 100, concurrency: 1, max_context: 2048}",
    }
    sizes = [size / 10 for size in range(90, 130)]
    found = [
        text
        for size in sizes
        if (tight := replace(facts, devices=(card("odd", size * GIB, 5.04e11, capability=(12, 0)),)))
        and codes(tight, **sections).keys() & VERDICTS
        and "enforce-eager" in (text := fix(tight, **sections))
    ]
    assert found
    for text in found:
        assert "max-num-seqs" not in text
        assert "quantization" not in text
        assert "engine.parallel" not in text
        # this card takes longer to read 7 GB than the host to launch 28 layers: launching costs one stream nothing
        assert re.search(r"one stream stays at [0-9.]+ tokens/s", text)
        assert text.endswith("tokens/s)")  # the last


def test_eager_mode_costs_what_the_host_takes_longer_than_the_card() -> None:
    case = case_of(facts_of(QWEN_7B, (H200,)), hardware="{gpu: h200-sxm}")
    first, then = re.search(r"one stream falls from ([0-9.]+) to ([0-9.]+) tokens/s", eager(case).price).groups()  # type: ignore[union-attr]
    assert float(then) < 0.6 * float(first)


def test_eager_mode_is_not_advised_beside_milder_changes() -> None:
    assert "enforce-eager" not in fix(facts_of(cards=(card("odd", 15.9 * GIB),)))


def test_the_smallest_card_is_named_and_does() -> None:
    facts = replace(facts_of(cards=(card("rtx-3070", 7.76 * GIB),)), known_cards=known_cards())
    name = advised(r"use (\S+) \([0-9.]+ GiB as CUDA shows it\), the smallest card that would do", fix(facts))
    sizes = {one.name: one for one in known_cards()}
    assert name == "l4"
    assert not codes(facts_of(cards=(sizes[name],))).keys() & VERDICTS


def test_two_cards_of_another_kind_are_two() -> None:
    eight_gib = (card("rtx-3070", 7.76 * GIB),) * 2
    facts = replace(facts_of(cards=eight_gib), known_cards=known_cards())
    engine = "{version: 0.32.0, parallel: {tensor: 2}}"
    name = advised(r"use 2 x (\S+) \(", fix(facts, engine=engine))
    sizes = {one.name: one for one in known_cards()}
    assert not codes(facts_of(cards=(sizes[name],) * 2), engine=engine).keys() & VERDICTS


@pytest.mark.parametrize(("held", "advises"), [(0, True), (2, False)])
def test_a_higher_utilization_is_advised_where_the_card_is_free(held: int, advises: bool) -> None:
    """7B needs some 0.73 of 23.5 GiB for 8,192 tokens; at 0.6 the weights do not fit. With 7 GiB held 0.67 is free."""
    facts = facts_of(cards=(card(used=int(held * 3.5 * GIB)),))
    text = fix(facts, engine="{version: 0.32.0, gpu_memory_utilization: 0.6}")
    assert ("raise engine.gpu_memory_utilization" in text) is advises


def test_8_bits_are_no_advice_for_a_quantized_checkpoint() -> None:
    small = (card("odd", 15.9 * GIB),)
    quantized: dict[str, Any] = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}
    facts = facts_of(cards=small)
    assert "quantization.weights: fp8" in fix(facts)
    facts = replace(facts, model=replace(facts.model, config=QWEN_7B | quantized))
    case = case_of(facts)
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    assert all("quantization.weights: " not in d.fix for d in found if d.code in VERDICTS)


def test_the_card_at_hand_is_not_what_to_buy() -> None:
    """At 0.6 the weights do not fit on 23.5 GiB; at the engine's own share they do, there and on an L4."""
    facts = replace(facts_of(), known_cards=known_cards())
    text = fix(facts, engine="{version: 0.32.0, gpu_memory_utilization: 0.6}")
    assert "raise engine.gpu_memory_utilization" in text
    assert "smallest card" not in text


def test_more_sequences_are_advised_up_to_what_the_cache_holds() -> None:
    """6 GiB hold some 60 requests of 1,756 tokens, 96 MiB each: 110 blocks of 896 KiB."""

    def advice(flight: int) -> str:
        load = f"{{input_tokens: 1500, output_tokens: 256, concurrency: {flight}, max_context: 8192}}"
        case = case_of(facts_of(), workload=load, engine="{version: 0.32.0, args: {max-num-seqs: 4}}")
        found = judge(case.deploy, case.facts, case.choices, case.prediction)
        (verdict,) = (d for d in found if d.code == "DC540")
        return verdict.fix

    assert advised(r"set max-num-seqs to (\d+) ", advice(8)) == "8"
    holds = int(advised(r"cache holds (\d+) of mean length", advice(200)))
    assert 55 <= holds <= 70
    assert advised(r"set max-num-seqs to (\d+) ", advice(200)) == str(holds)
