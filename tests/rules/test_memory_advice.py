"""What a verdict about memory says beside its figure: where the cause stands, why, and advice that holds together.

Qwen2.5-7B: 28 layers x 4 KV heads x (128 + 128) x 2 B = 57,344 B a token.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from configured import GIB, QWEN_7B, card, case_of, codes, facts_of

from deployc.cost.explain import explain
from deployc.diagnostics import Diagnostic
from deployc.facts.gpu_profile import cards as known_cards
from deployc.rules import judge
from deployc.types.facts import AdapterFacts, Facts
from deployc.types.figure import Factor

CONTEXT = Factor(0.5 * GIB, 0.25 * GIB, 0.6 * GIB, "B", "transferred", "this test")
LOAD = "{input_tokens: 1500, output_tokens: 256, concurrency: 8, max_context: %d}"
OPEN = "{input_tokens: 1500, output_tokens: 256, concurrency: 8}"
ALONE = "{version: 0.33.0, gpu_memory_utilization: %s}"
MHA = QWEN_7B | {"num_attention_heads": 32, "num_key_value_heads": 32, "hidden_size": 4096, "num_hidden_layers": 32}
WINDOW = QWEN_7B | {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 4096, "head_dim": 128,
}  # fmt: skip


def facts_with(config: dict[str, Any] = QWEN_7B, **given: Any) -> Facts:
    """Facts whose engine's own context takes 0.25 to 0.6 GiB before its check."""
    facts = facts_of(config, version="0.33.0", **given)
    factors = {**facts.calibration.factors, "context_before_check": CONTEXT}
    return replace(facts, calibration=replace(facts.calibration, factors=factors))


def said(facts: Facts, **sections: str) -> dict[str, Diagnostic]:
    """Code -> the first diagnostic of it."""
    case = case_of(facts, **sections)
    found: dict[str, Diagnostic] = {}
    for diagnostic in judge(case.deploy, case.facts, case.choices, case.prediction):
        found.setdefault(diagnostic.code, diagnostic)
    return found


def number(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def place(of: Diagnostic) -> str:
    assert of.at is not None
    return of.at.excerpt[of.at.column - 1 :]


# --- advice that holds together --------------------------------------------------------------------------------------


def test_a_start_that_fails_twice_passes_when_both_are_mended() -> None:
    """All of a card of 21 GiB is never free: 1 - 0.6 / 21 = 0.971 is. The longest context is that at 0.97."""
    facts = facts_with(cards=(card("odd", 21 * GIB, capability=(8, 6)),), graphs_in_budget=True)
    model = "{source: org/model, context: {rope: yarn, factor: 8}}"
    both = said(facts, model=model, workload=LOAD % 262144, engine=ALONE % 1.0)
    assert {code: str(both[code].severity) for code in ("DC302", "DC303")} == {"DC302": "error", "DC303": "error"}
    length = number(r"max_context to (\d+)", both["DC302"].fix)
    assert "at the utilization that starts, 0.97," in both["DC302"].detail
    assert (
        both["DC303"].fix == f"set engine.gpu_memory_utilization to at most 0.97 and workload.max_context to {length}"
    )
    assert codes(facts, model=model, workload=LOAD % int(length), engine=ALONE % 0.97) == {}
    longer = codes(facts, model=model, workload=LOAD % (int(length) + 16), engine=ALONE % 0.97)
    assert longer == {"DC302": "warning"}
    one = said(facts, model=model, workload=LOAD % 262144, engine=ALONE % 0.97)
    assert "at the utilization that starts" not in one["DC302"].detail
    assert number(r"max_context to (\d+)", one["DC302"].fix) == length


def test_a_share_that_holds_no_request_is_no_advice() -> None:
    """Others hold 6 of 20 GiB: 1 - 6.6 / 20 = 0.67, 13.4 GiB, less than the weights of 14.2."""
    facts = facts_with(cards=(card("odd", 20 * GIB),))
    held = said(facts, hardware="{gpu: rtx-4090, reserved_memory: 6GiB}", engine=ALONE % 0.9)["DC303"]
    assert "at most 0.67, which leaves no room for a request: use another card" in held.fix
    assert "hardware.devices" in held.fix
    assert "hardware.devices" not in said(facts, engine=ALONE % 0.99)["DC303"].fix  # nobody else holds anything


def test_a_share_that_leaves_room_for_graphs_does() -> None:
    """At 0.99 of 23.5 GiB and 0.6 of the engine's own, less than nothing is left beside the budget."""
    for share in ("0.98", "0.99"):
        advice = said(facts_with(), engine=ALONE % share)["DC305"].fix
        least = number(r"gpu_memory_utilization to at most ([0-9.]+[0-9])", advice)
        assert not {"DC303", "DC305"} & codes(facts_with(), engine=ALONE % least).keys()
        more = f"{float(least) + 0.01:.2f}"
        assert "DC305" in codes(facts_with(), engine=ALONE % more)


@pytest.mark.parametrize("written", ["0.2", "0.5", "1.0"])
def test_another_card_is_advised_with_the_share_that_it_takes(written: str) -> None:
    facts = replace(facts_with(cards=(card("odd", 12 * GIB),)), known_cards=known_cards())
    advice = said(facts, engine=ALONE % written)["DC300"].fix
    name, share = (number(p, advice) for p in (r"use (\S+) \(", r"with engine.gpu_memory_utilization at ([0-9.]+)"))
    there = replace(facts, devices=tuple(one for one in known_cards() if one.name == name))
    assert not {"DC300", "DC301", "DC302", "DC303"} & codes(there, engine=ALONE % share).keys()


@pytest.mark.parametrize("reserved", ["19.9GiB", "20GiB", "200GiB"])
def test_a_card_that_others_hold_whole_is_to_be_freed(reserved: str) -> None:
    """Of 20 GiB nothing is free: no share is said to start, and each verdict says what to do."""
    facts = facts_with(cards=(card("odd", 20 * GIB),))
    case = case_of(facts, hardware=f"{{gpu: rtx-4090, reserved_memory: {reserved}}}")
    judged = judge(case.deploy, case.facts, case.choices, case.prediction)
    found = [one for one in judged if one.code.startswith("DC30")]
    assert [(one.code, str(one.severity)) for one in found if one.code == "DC303"] == [("DC303", "error")]
    assert "nothing is free then" in next(one.detail for one in found if one.code == "DC303")
    assert all(one.fix for one in found)


def test_what_is_missing_is_no_negative_size() -> None:
    """100,000 sequences of 152,064 logits in float32 are 56.6 GiB, of a card of 23.5."""
    many = said(facts_with(), engine="{version: 0.33.0, args: {max-num-seqs: 100000}}")["DC301"]
    assert re.search(r"outside torch: [\d.]+ GiB( to [\d.]+ GiB)? are missing", many.detail)
    assert " -" not in many.detail


# --- where the cause stands ------------------------------------------------------------------------------------------


def test_a_utilization_too_low_for_the_model_is_pointed_at() -> None:
    assert place(said(facts_with(), engine=ALONE % 0.1)["DC300"]).startswith("0.1")  # weights 14.2 of 2.35 GiB
    assert place(said(facts_with(), engine=ALONE % 0.62)["DC301"]).startswith("0.62")  # 14.57 GiB less 14.3 and 1.3
    small = facts_with(cards=(card("odd", 12 * GIB),))  # no share of 12 GiB holds 14.2
    assert place(said(small, engine=ALONE % 0.1)["DC300"]).startswith("rtx-4090")


# --- why a token takes that much --------------------------------------------------------------------------------------


def test_heads_that_are_not_shared_are_the_reason() -> None:
    """32 layers x 32 heads x (128 + 128) x 2 B = 512 KiB a token; with 4 KV heads in 28 layers 56 KiB, 9.1 x less."""
    model = "{source: org/model, context: {rope: yarn, factor: 8}}"
    facts = facts_with(MHA, cards=(card("odd", 30 * GIB),))
    alone = said(facts, model=model, workload=LOAD % 262144)["DC302"].detail
    assert "262,144 tokens of 512 KiB each are 128 GiB a card" in alone
    assert "Each of the model's 32 heads keeps keys and values of its own, in 32 layers." in alone
    shared = said(facts_with(), model=model, workload=LOAD % 262144)["DC302"].detail
    assert "262,144 tokens of 56.0 KiB each are 14.0 GiB a card" in shared
    assert "The model's 28 heads share 4 of keys and values, in 28 layers." in shared


# --- what was chosen for the file ------------------------------------------------------------------------------------


def test_a_context_that_nobody_asked_for_is_shortened_and_said() -> None:
    """32,768 tokens and the null block: 2,049 x 917,504 B = 1.75 GiB of KV, beside 14.3 and 1.3 GiB."""
    tight, roomy = facts_with(cards=(card("odd", 18.5 * GIB),)), facts_with(cards=(card("odd", 20 * GIB),))
    found = said(tight, workload=OPEN)["DC302"]
    assert (str(found.severity), place(found)[0]) == ("note", "{")
    assert "the model takes 32,768 tokens. 32,768 tokens of 56.0 KiB each are 1.75 GiB a card" in found.detail
    length = int(number(r"max_model_len is set to ([\d,]+)", found.detail).replace(",", ""))
    assert "DC302" not in said(tight, workload=LOAD % length)
    assert "DC302" in said(tight, workload=LOAD % (length + 16))
    assert "DC302" not in said(roomy, workload=OPEN)


def test_a_utilization_that_nobody_asked_for_is_lowered_and_said() -> None:
    """23.5 GiB, 4 of them held, 0.6 the engine's own: (23.5 - 4.6) / 23.5 = 0.804. At 1 GiB 0.93, above the default."""
    found = said(facts_with(), hardware="{gpu: rtx-4090, reserved_memory: 4GiB}")["DC303"]
    assert str(found.severity) == "note"
    assert "92% of the card, not of what is free: others hold 4.00 GiB of the card." in found.detail
    assert "gpu_memory_utilization is set to 0.80" in found.detail
    assert "DC303" not in said(facts_with(), hardware="{gpu: rtx-4090, reserved_memory: 1GiB}")


def test_a_checkpoint_that_is_quantized_is_taken_as_it_is() -> None:
    """Its KV cache too: compressed-tensors with a kv_cache_scheme keeps fp8, half the bytes a token."""
    scheme: dict[str, Any] = {
        "quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
        "config_groups": {"group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
        }},
    }  # fmt: skip
    fp8 = {"kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"}}
    plain = case_of(facts_with(QWEN_7B | {"quantization_config": scheme}))
    halved = case_of(facts_with(QWEN_7B | {"quantization_config": scheme | fp8}))
    assert plain.choices.weights.value == halved.choices.weights.value == "checkpoint"
    assert plain.prediction.kv_bytes_per_token.value == 57_344
    assert halved.prediction.kv_bytes_per_token.value == 28_672
    assert case_of(facts_with()).choices.weights.value == "none"


# --- more room, smaller cards ----------------------------------------------------------------------------------------


def test_room_is_first_what_the_file_took_away() -> None:
    """The default utilization is 0.92 and a step 2,048 tokens; the file has less of one, more of the other."""
    load = "{input_tokens: 6000, output_tokens: 256, concurrency: 64, max_context: 8192}"
    engine = "{version: 0.33.0, gpu_memory_utilization: %s, args: {max-num-batched-tokens: %d}}"
    found = said(facts_with(), workload=load, engine=engine % (0.8, 16384))["DC306"].fix
    assert "raise engine.gpu_memory_utilization to 0.92 (room for" in found
    assert "set engine.args: {max-num-batched-tokens: 2048} (room for" in found
    usual = said(facts_with(), workload=load, engine=engine % (0.92, 2048))["DC306"].fix
    assert "utilization" not in usual
    assert "max-num-batched-tokens" not in usual


def test_the_smallest_card_may_be_one_without_a_profile() -> None:
    """The load needs some 16 GiB; no profile with kernels for bf16 lies between 16 and 22 GiB."""
    for size, smallest in ((19, "odd"), (23.5, "l4")):
        facts = replace(facts_with(cards=(card("odd", size * GIB),)), known_cards=known_cards())
        case = case_of(facts)
        assert explain(case.deploy, facts, case.choices, case.prediction).smallest_card == smallest


# --- settings that cost without need ---------------------------------------------------------------------------------


OFFLOADING = "{version: 0.33.0, args: {cpu-offload-gb: %s}}"
UNKNOWN = {"DC500": "error"}
"""The tests' catalogue of flags is a small one."""


@pytest.mark.parametrize(("size", "code"), [(23.5, "DC309"), (14.0, "DC311")])
def test_weights_in_host_memory_are_named_and_needless_ones_so(size: float, code: str) -> None:
    """14.3 GiB of weights fit into 0.92 x 23.5 GiB, and not into 0.92 x 14."""
    facts = facts_with(cards=(card("odd", size * GIB),))
    assert codes(facts, engine=OFFLOADING % 10) == {code: "warning"} | UNKNOWN
    assert not codes(facts, engine=OFFLOADING % 0).keys() & {"DC309", "DC311"}


def test_what_lies_in_host_memory_is_not_on_the_card() -> None:
    """GiB a card, up to all but the two tables of 152,064 x 3,584 x 2 B = 1.015 GiB each."""
    bills = {gib: case_of(facts_with(), engine=OFFLOADING % gib).prediction.memory for gib in (0, 2.5, 40)}
    assert bills[0].weights.value - bills[2.5].weights.value == 2.5 * GIB
    assert bills[2.5].kv_cache.value - bills[0].kv_cache.value == 2.5 * GIB
    assert bills[40].weights.value == 2 * 152_064 * 3_584 * 2


def test_a_model_larger_than_its_card_starts_with_enough_in_host_memory() -> None:
    """14.3 GiB, 1.3 of peak and the like, 0.44 of KV for 8,192 tokens: 12.88 GiB of budget lack some 3.2."""
    facts = facts_with(cards=(card("odd", 14 * GIB),))
    assert codes(facts, engine=OFFLOADING % 1)["DC300"] == "error"
    assert codes(facts, engine=OFFLOADING % 4) == {"DC311": "warning"} | UNKNOWN


def test_what_is_offloaded_crosses_the_link_at_every_step() -> None:
    """10 GiB over 31.5 GB/s are 0.341 s."""
    l4 = next(one for one in known_cards() if one.name == "l4")
    assert l4.interconnect_bandwidth is not None
    assert l4.interconnect_bandwidth.value == 31.5e9
    assert "10.0 GiB of each card's weights are read from host memory at every step, 341 ms more at the least" in (
        said(facts_with(cards=(l4,)), engine=OFFLOADING % 10)["DC309"].detail
    )


def test_without_its_window_a_model_takes_no_context_beyond_it() -> None:
    facts = facts_with(WINDOW)
    off = "{version: 0.33.0, args: {disable-sliding-window: true}}"
    beyond = said(facts, workload=LOAD % 4097, engine=off)["DC520"]
    assert "no context beyond the model's window of 4,096" in beyond.detail
    assert "DC520" not in said(facts, workload=LOAD % 4096, engine=off)
    assert "DC520" not in said(facts, workload=LOAD % 8192)
    assert case_of(facts, workload=OPEN, engine=off).choices.max_model_len.value == 4096
    assert "DC520" not in said(facts_with(), workload=LOAD % 8192, engine=off)  # a model without a window


def test_served_adapters_double_the_graphs() -> None:
    """Batches of 1, 2, 4, 8, 16 … 248: 34 sizes, 256 the 35th; with an adapter served 70 graphs, merged 35."""
    adapter = AdapterFacts("a", "./a", None, {"r": 16}, 16, "org/model", ("q_proj",), (), {})
    facts = replace(facts_with(), adapters=(adapter,))
    found = {}
    for mode in ("serve", "merge"):
        case = case_of(
            facts,
            adapters=f"[{{name: a, source: ./a, mode: {mode}}}]",
            engine="{version: 0.33.0, args: {max-num-seqs: 256}}",
        )
        graphs = explain(case.deploy, facts, case.choices, case.prediction).graphs
        assert graphs is not None
        found[mode] = (graphs.captured, graphs.with_adapters, graphs.in_budget)
    assert found == {"serve": (70, True, False), "merge": (35, False, False)}
    eager = case_of(facts_with(), engine="{version: 0.33.0, args: {enforce-eager: true}}")
    assert explain(eager.deploy, eager.facts, eager.choices, eager.prediction).graphs is None


def test_a_merge_is_advised_where_it_makes_room_for_the_graphs() -> None:
    """Between graphs with adapters and without them lies a budget that leaves room for one half alone."""
    adapter = AdapterFacts("a", "./a", None, {"r": 16}, 16, "org/model", ("q_proj",), (), {})
    facts = replace(facts_with(), adapters=(adapter,))
    engine = "{version: 0.33.0, gpu_memory_utilization: %.2f, args: {max-num-seqs: 128}}"
    serve, merge = (f"[{{name: a, source: ./a, mode: {mode}}}]" for mode in ("serve", "merge"))
    advised = [
        share / 100
        for share in range(88, 98)
        if "set mode: merge (graphs"
        in getattr(said(facts, adapters=serve, engine=engine % (share / 100)).get("DC305"), "fix", "")
    ]
    assert advised
    for share in advised:
        assert "DC305" not in said(facts, adapters=merge, engine=engine % share)
    assert "DC305" in said(facts, adapters=merge, engine=engine % (max(advised) + 0.01))
