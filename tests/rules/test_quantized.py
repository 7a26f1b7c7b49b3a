"""Formats against cards, layers and settings: what is refused, what is said, what is advised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import A100, GIB, H200, HOST, QWEN_05B, QWEN_7B, SMOLLM2, card, case_of, choices_of, facts_of
from handmade import deploy_of

from deployc.choose.format import group_size
from deployc.cost.capability import eight_bit, has_weight_kernels
from deployc.cost.weights.cuts import GROUP_SIZES, cuts
from deployc.diagnostics import Diagnostic
from deployc.emit.recipe import recipe
from deployc.rules import judge
from deployc.types.facts import Facts, GpuFacts, TensorGroup

FORMATS = ("fp8", "int8", "int8-weight-only", "int4-rtn", "int4-gptq", "int4-awq")
CALIBRATION = "calibration: {data: ./calib.jsonl}"
CODES = {"DC251", "DC256", "DC257", "DC258", "DC259"}
LOAD = "{input_tokens: 500, output_tokens: 100, concurrency: 1, max_context: 2048}"
MOE: dict[str, Any] = QWEN_7B | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 768,
    "num_experts": 16, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "norm_topk_prob": True, "intermediate_size": 6144,
}  # fmt: skip


def said(quantization: str, facts: Facts | None = None, **sections: str) -> list[Diagnostic]:
    """What the rules of this file say, with those of other files left out."""
    case = case_of(facts, quantization=f"{{{quantization}}}", **{"workload": LOAD} | sections)
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    return [one for one in found if one.code in CODES]


def codes(quantization: str, facts: Facts | None = None, **sections: str) -> list[tuple[str, str]]:
    return [(one.code, str(one.severity)) for one in said(quantization, facts, **sections)]


def on(capability: tuple[int, int], **more: Any) -> Facts:
    return facts_of(cards=(card("odd", 79 * GIB, capability=capability),), **more)


@pytest.mark.parametrize(
    ("weights", "capability", "found"),
    [
        ("fp8", (7, 0), ["DC251"]), ("fp8", (7, 5), ["DC258"]), ("fp8", (8, 0), ["DC258"]), ("fp8", (8, 6), ["DC258"]),
        ("fp8", (8, 9), []), ("fp8", (9, 0), []), ("fp8", (12, 0), []),
        ("int8", (7, 0), ["DC251"]), ("int8", (7, 5), []), ("int8", (9, 0), []), ("int8", (10, 0), ["DC251"]),
        ("int8-weight-only", (7, 0), ["DC251"]), ("int8-weight-only", (7, 5), []), ("int8-weight-only", (12, 0), []),
        ("int4-rtn", (7, 0), ["DC251"]), ("int4-rtn", (8, 0), []), ("int4-rtn", (10, 0), []),
        (f"int4-awq, {CALIBRATION}", (7, 0), ["DC251"]), (f"int4-gptq, {CALIBRATION}", (7, 5), []),
    ],
)  # fmt: skip
def test_formats_by_compute_capability(weights: str, capability: tuple[int, int], found: list[str]) -> None:
    assert [code for code, _ in codes(f"weights: {weights}", on(capability))] == found


def test_a_card_without_a_kernel_is_told_its_own_8_bit_type() -> None:
    (blackwell,) = said("weights: int8", on((12, 0)))
    assert blackwell.fix == "set quantization.weights: fp8, its own 8-bit type"
    (volta,) = said("weights: int8", on((7, 0)))
    assert volta.fix == "set quantization.weights: none"
    (ampere,) = said("weights: fp8", on((8, 6)))
    assert (str(ampere.severity), "Marlin" in ampere.detail) == ("warning", True)
    assert "set quantization.weights: int8" in ampere.fix


@pytest.mark.parametrize(
    ("weights", "found"),
    [("fp8", [("DC258", "warning")]), ("int8", []), ("int8-weight-only", [("DC251", "error")]), ("int4-rtn", []),
     (f"int4-gptq, {CALIBRATION}", []), (f"int4-awq, {CALIBRATION}", [])],
)  # fmt: skip
def test_what_the_engine_of_the_cpu_loads(weights: str, found: list[tuple[str, str]]) -> None:
    assert codes(f"weights: {weights}", facts_of(SMOLLM2, (HOST,))) == found


def test_experts_on_the_cpu() -> None:
    small = MOE | {"num_hidden_layers": 1}
    assert codes("weights: fp8", facts_of(small, (HOST,))) == [("DC251", "error")]
    assert codes("weights: int8", facts_of(small, (HOST,))) == []
    assert codes("weights: int4-rtn", facts_of(small, (HOST,))) == []


def test_experts_in_packed_bytes_are_marlins_alone() -> None:
    assert codes("weights: int8-weight-only", facts_of(MOE, (H200,))) == []
    odd = facts_of(MOE | {"hidden_size": 2080}, (H200,))
    (found,) = said("weights: int8-weight-only", odd)
    assert "2,080" in found.detail
    assert codes("weights: int4-rtn", odd) == []


def test_a_card_of_unknown_capability_is_not_held_against_a_format() -> None:
    odd = facts_of(cards=(replace(card("odd"), compute_capability=None),))
    assert all(has_weight_kernels(odd, weights) for weights in FORMATS)
    assert eight_bit(odd) == "int8"


@pytest.mark.parametrize("weights", ["int4-gptq", "int4-awq"])
def test_calibrated_weights_need_a_text(weights: str) -> None:
    assert codes(f"weights: {weights}") == [("DC256", "error")]
    assert codes(f"weights: {weights}, {CALIBRATION}") == []


@pytest.mark.parametrize(
    ("quantization", "found"),
    [
        (f"weights: fp8, {CALIBRATION}", [("DC259", "warning")]),
        (f"weights: int4-rtn, {CALIBRATION}", [("DC259", "warning")]),
        (f"weights: none, {CALIBRATION}", [("DC259", "warning")]),
        (f"weights: auto, {CALIBRATION}", []),
        (f"weights: fp8, {CALIBRATION}, quality: {{max_mean_kl: 0.1}}", []),
        ("weights: int8, calibration: {data: ./c.jsonl, smoothquant: 0.8}", []),
        ("weights: fp8, calibration: {data: ./c.jsonl, smoothquant: 0.8}", [("DC259", "error")]),
        ("weights: int4-gptq, calibration: {data: ./c.jsonl, smoothquant: 0.8}", [("DC259", "error")]),
        ("weights: auto, calibration: {data: ./c.jsonl, smoothquant: 0.8}", [("DC259", "error")]),
        ("weights: fp8, group_size: 64", [("DC259", "warning")]),
        ("weights: none, group_size: 64", [("DC259", "warning")]),
        ("weights: int4-rtn, group_size: 64", []),
        ("weights: fp8, group_size: auto", []),
    ],
)  # fmt: skip
def test_settings_of_another_format(quantization: str, found: list[tuple[str, str]]) -> None:
    assert codes(quantization) == found


@pytest.mark.parametrize(
    ("config", "cards", "size"),
    [
        (QWEN_7B, 1, 128),  # 3,584 = 28 x 128 and 18,944 = 148 x 128
        (QWEN_7B, 2, 128),  # 9,472 = 74 x 128, 1,792 = 14 x 128
        (QWEN_7B, 4, 128),  # 4,736 = 37 x 128, 896 = 7 x 128
        (SMOLLM2, 1, 64),  # 576 = 9 x 64
        (QWEN_05B, 2, 64),  # 448 = 7 x 64; 2,432 = 19 x 128
        (MOE, 1, 128), (MOE, 4, 64),  # 768 / 4 = 192 = 3 x 64
        (MOE, 8, 32),  # 96 = 3 x 32
    ],
)  # fmt: skip
def test_auto_is_the_largest_group_that_a_rank_holds_whole(config: dict[str, Any], cards: int, size: int) -> None:
    facts = facts_of(config, (replace(H200, name="h200-sxm"),) * cards)
    case = case_of(
        facts, quantization="{weights: int4-rtn}", hardware=f"{{gpu: h200-sxm, count: {cards}}}",
        engine=f"{{version: 0.32.0, parallel: {{tensor: {cards}}}}}", workload=LOAD,
    )  # fmt: skip
    chosen = case.choices.group_size
    assert (chosen.value, chosen.because) == (size, "default")
    assert "largest" in chosen.reason
    assert not codes("weights: int4-rtn", facts, hardware=f"{{gpu: h200-sxm, count: {cards}}}",
                     engine=f"{{version: 0.32.0, parallel: {{tensor: {cards}}}}}")  # fmt: skip
    made = recipe(case.deploy, case.facts, case.choices)
    assert made is not None and made.group_size == size


def test_a_written_group_is_taken_and_checked_on_every_rank() -> None:
    two = facts_of(QWEN_05B, (A100,) * 2)
    engine = {"engine": "{version: 0.32.0, parallel: {tensor: 2}}", "hardware": "{gpu: a100-80, count: 2}"}
    (found,) = said("weights: int4-rtn, group_size: 128", two, **engine)
    assert (found.code, str(found.severity)) == ("DC257", "error")
    assert "model.layers.{0-23}.self_attn.o_proj has 448 inputs on each of 2 ranks" in found.detail
    assert found.fix == "set quantization.group_size: 64"
    assert codes("weights: int4-rtn, group_size: 64", two, **engine) == []
    case = case_of(two, quantization="{weights: int4-rtn, group_size: 32}", workload=LOAD, **engine)
    assert (case.choices.group_size.value, case.choices.group_size.reason) == (32, "as written")
    assert case.choices.group_size.because.startswith("deploy.yaml:")


def test_layers_that_no_group_divides_are_named_with_what_to_do() -> None:
    """4,880 = 152.5 x 32: down_proj alone has so many inputs."""
    facts = facts_of(QWEN_05B | {"intermediate_size": 4880})
    (found,) = said("weights: int4-rtn", facts)
    assert (found.code, str(found.severity)) == ("DC257", "error")
    assert "model.layers.{0-23}.mlp.down_proj has 4,880 inputs, no multiple of the group of 128" in found.detail
    assert found.fix == "leave down_proj at 16 bit in quantization.ignore, or set quantization.weights: fp8"
    assert codes("weights: int4-rtn, ignore: [lm_head, down_proj]", facts) == []
    assert codes("weights: int8", facts) == []


def test_packed_bytes_fill_whole_words_on_a_rank() -> None:
    facts = facts_of(QWEN_05B | {"intermediate_size": 4866}, (A100,))
    (found,) = said("weights: int8-weight-only", facts)
    assert "4,866 inputs, no multiple of 4, the integers of a word" in found.detail
    assert codes("weights: int8-weight-only", facts_of(QWEN_05B, (A100,))) == []


def test_the_engine_of_the_cpu_wants_outputs_in_tiles_too() -> None:
    """q, k and v are one matrix of 576 + 2 x 192 rows; of 9 heads of 8 and 3 of 8, 72 + 48 = 120 = 3.75 x 32."""
    narrow = SMOLLM2 | {"hidden_size": 576, "head_dim": 8}
    (found,) = said("weights: int4-rtn", facts_of(narrow | {"num_attention_heads": 12}, (HOST,)))
    assert "no multiple of 32" in found.detail
    assert codes("weights: int4-rtn", facts_of(SMOLLM2, (HOST,))) == []


def test_experts_in_one_tensor_are_said_to_stay() -> None:
    facts = facts_of(MOE, (H200,))
    apart = facts.model.tensors
    together = tuple(group for group in apart if ".experts." not in group.pattern)
    stacked = TensorGroup("model.layers.{0-3}.mlp.experts.down_proj", "BF16", (16, 768, 2048), 4)
    assert len(together) < len(apart)
    (found,) = said("weights: fp8", replace(facts, model=replace(facts.model, tensors=(*together, stacked))))
    assert (found.code, str(found.severity)) == ("DC257", "warning")
    assert "192 MiB" in found.detail  # 4 x 16 x 768 x 2,048 x 2 B
    assert codes("weights: fp8", facts) == []


def test_formats_without_groups_say_none_in_the_recipe() -> None:
    for weights, size in (("fp8", 0), ("int8", 0), ("int8-weight-only", 0), ("int4-rtn", 128)):
        case = case_of(quantization=f"{{weights: {weights}}}", workload=LOAD)
        made = recipe(case.deploy, case.facts, case.choices)
        assert made is not None and made.group_size == size


def test_no_group_lies_on_two_ranks() -> None:
    deploy = deploy_of(
        "version: 1\nname: t\nmodel: {source: org/model}\nhardware: {gpu: x}\nengine: {version: 0.32.0}\n"
        "workload: {input_tokens: 1, output_tokens: 1, concurrency: 1}\nquantization: {weights: int4-rtn}\n"
    )
    for config in (QWEN_7B, QWEN_05B, SMOLLM2, MOE):
        for ranks in (1, 2, 4, 8):
            facts = facts_of(config, (H200,) * ranks)
            choices = choices_of(weights="int4-rtn", tensor_parallel_size=ranks)
            layers, size = list(cuts(facts, choices)), group_size(deploy, facts, choices)
            divides = [n for n in GROUP_SIZES if not any(layer.inputs % n for layer in layers)]
            assert layers
            assert size.value == (divides[0] if divides else 128)


def test_every_card_of_the_catalogue_has_a_type_or_is_too_old() -> None:
    cards: list[GpuFacts] = [card(capability=(major, minor)) for major in (7, 8, 9, 10, 12) for minor in (0, 5, 6, 9)]
    facts = facts_of()
    for one in cards:
        eight = eight_bit(facts, one)
        assert eight is None or has_weight_kernels(facts, eight, one)
        assert (eight is None) == ((one.compute_capability or (0, 0)) < (7, 5))
