"""Sizes of quantized layers against the kernels of a version: every format, every layer, ranks, cards and versions."""

from __future__ import annotations

from typing import Any

import pytest
from configured import A100, GIB, H200, HOST, QWEN_7B, SMOLLM2, card, case_of, facts_of

from deployc.cost.weights.packed import stored
from deployc.diagnostics import Diagnostic
from deployc.rules.packed import layers_have_a_kernel
from deployc.types.facts import GpuFacts

QWEN_72B = QWEN_7B | {
    "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8,
}  # fmt: skip
MOE = QWEN_7B | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 768,
    "num_experts": 16, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "norm_topk_prob": True, "intermediate_size": 6144,
}  # fmt: skip
ADA, AMPERE, TURING = card(), card("rtx-3090", capability=(8, 6)), card("t4", 15 * GIB, capability=(7, 5))


def packed(bits: int, group: int | None, symmetric: bool = True) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "group_size": group}
    weights["strategy"] = "group" if group else "channel"
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    said = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"]}
    return {"quantization_config": said | {"config_groups": groups}}


def gptq(bits: int = 4, group: int = 128, sym: bool = True, **more: Any) -> dict[str, Any]:
    said = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym}
    return {"quantization_config": said | more}


def awq(group: int = 128) -> dict[str, Any]:
    said = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"}
    return {"quantization_config": said}


def fp8(block: bool = False) -> dict[str, Any]:
    said = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    return {"quantization_config": said | ({"weight_block_size": [128, 128]} if block else {})}


def said(
    config: dict[str, Any], one: GpuFacts, version: str = "0.23.0", ranks: int = 1, **sections: str
) -> list[Diagnostic]:
    facts = facts_of(config, (one,) * ranks, version)
    case = case_of(
        facts, engine=f"{{version: {version}, parallel: {{tensor: {ranks}}}}}",
        hardware=f"{{gpu: x, count: {ranks}}}", **sections,
    )  # fmt: skip
    return list(layers_have_a_kernel(case))


def codes(*args: Any, **sections: Any) -> list[tuple[str, str]]:
    return [(one.code, str(one.severity)) for one in said(*args, **sections)]


ERROR, SLOW = [("DC580", "error")], [("DC581", "warning")]


@pytest.mark.parametrize(
    ("config", "one", "version", "ranks", "found"),
    [
        (QWEN_72B | packed(8, None), H200, "0.23.0", 4, ERROR),  # 7,392 = 57.75 x 128, = 115.5 x 64
        (QWEN_72B | packed(8, None), H200, "0.24.0", 4, SLOW),  # padded
        (QWEN_72B | packed(8, None), H200, "0.23.0", 2, []),  # Machete: 14,784 = 231 x 64
        (QWEN_72B | packed(8, None), A100, "0.23.0", 4, []),  # AllSpark: 7,392 = 462 x 16
        (QWEN_72B | packed(8, None), A100, "0.31.0", 4, SLOW),  # which is gone
        (QWEN_72B | packed(4, None), A100, "0.22.0", 4, ERROR),
        (QWEN_72B | packed(4, None), A100, "0.23.0", 4, SLOW),  # Triton's takes it
        (QWEN_72B | packed(4, 128), A100, "0.33.0", 4, ERROR),  # groups on two ranks: no version mends that
        (QWEN_72B | packed(4, 128), A100, "0.33.0", 1, []),
        (QWEN_72B | gptq(8, -1), H200, "0.19.0", 4, ERROR),
        (QWEN_72B | gptq(4, 32), H200, "0.19.0", 4, ERROR),
        (QWEN_72B | gptq(4, 32), H200, "0.24.0", 4, SLOW),
        (QWEN_72B | gptq(4, 128), A100, "0.33.0", 4, ERROR),
        (QWEN_72B | awq(32), A100, "0.23.0", 4, ERROR),  # bfloat16, which the older AWQ kernels do not read
        (QWEN_72B | awq(32), A100, "0.24.0", 4, SLOW),
        (QWEN_72B | awq(128), A100, "0.24.0", 4, ERROR),
        (QWEN_72B | awq(128), A100, "0.24.0", 2, ERROR),  # 14,784 = 115.5 x 128
        (QWEN_72B | fp8(), AMPERE, "0.23.0", 8, ERROR),  # 3,696 = 28.9 x 128, = 57.75 x 64
        (QWEN_72B | fp8(), AMPERE, "0.24.0", 8, SLOW),
        (QWEN_72B | fp8(), H200, "0.23.0", 8, []),  # multiplied in fp8: no tiles of Marlin
        (QWEN_7B | gptq(), TURING, "0.13.0", 1, ERROR),  # Marlin begins at 8.0; Exllama reads float16 alone
        (QWEN_7B | gptq(), TURING, "0.14.0", 1, []),
        (QWEN_7B | gptq(), HOST, "0.23.0", 1, []),
        (QWEN_7B | gptq(3), A100, "0.20.2", 1, ERROR),  # other bits: float16 alone, and since 0.22 not at all
        (QWEN_7B | gptq(3), A100, "0.32.0", 1, ERROR),
        (QWEN_7B, H200, "0.23.0", 1, []),
    ],
)  # fmt: skip
def test_by_format_card_version_and_ranks(
    config: dict[str, Any], one: GpuFacts, version: str, ranks: int, found: list[tuple[str, str]]
) -> None:
    if one is TURING:  # its 16-bit type is float16 unless the file insists
        assert codes(config, one, version, ranks, model="{source: org/model, dtype: bfloat16}") == found
    else:
        assert codes(config, one, version, ranks) == found


def test_float16_opens_the_older_kernels_and_is_said() -> None:
    half = "{source: org/model, dtype: float16}"
    (refused,) = said(QWEN_72B | awq(32), A100, "0.23.0", 4)
    assert "set model.dtype: float16" in refused.fix
    (slow,) = said(QWEN_72B | awq(32), A100, "0.23.0", 4, model=half)
    assert (slow.code, "AWQ, a last resort" in slow.detail) == ("DC581", True)
    (exllama,) = said(QWEN_72B | gptq(4, 32), A100, "0.19.0", 4, model=half)
    assert "Exllama" in exllama.detail


def test_an_error_names_layer_sizes_kernel_and_what_helps() -> None:
    (found,) = said(QWEN_72B | packed(8, None), H200, "0.23.0", 4)
    assert "model.layers.{0-79}.mlp.down_proj has 7,392 inputs and 8,192 outputs on each of 4 ranks" in found.detail
    assert "Marlin takes multiples of 128 inputs and 64 outputs" in found.detail
    assert "8 bits, a scale a row" in found.detail
    assert "engine.parallel: {tensor: 2, replicas: 2}" in found.fix
    assert "engine.version to 0.24.0 or newer" in found.fix
    (straddling,) = said(QWEN_72B | awq(128), A100, "0.24.0", 4)
    assert "no whole number of the checkpoint's groups of 128" in straddling.detail
    assert "0.24" not in straddling.fix


def test_dense_layers_of_a_mixture_count_too() -> None:
    dense = MOE | {"mlp_only_layers": [0], "intermediate_size": 10944}
    assert codes(dense | awq(32), A100, "0.23.0") == ERROR
    assert codes(dense | awq(32), A100, "0.24.0") == []  # 171 x 64, the other of Marlin's tiles
    assert codes(MOE | awq(), A100, "0.23.0") == []


def test_experts_go_by_rules_of_their_own() -> None:
    """768 / 8 = 96: no multiple of 64; a group of 128 lies on two ranks, of which AWQ makes 32 and others nothing."""
    assert codes(MOE | awq(128), H200, "0.32.0", 8) == SLOW
    assert codes(MOE | awq(32), H200, "0.32.0", 8) == SLOW
    assert codes(MOE | packed(4, 128), H200, "0.32.0", 8) == ERROR
    assert codes(MOE | packed(4, 128), H200, "0.32.0", 2) == []


@pytest.mark.parametrize(("ranks", "found"), [(1, []), (2, []), (4, ERROR), (8, ERROR)])
def test_blocks_of_fp8_are_not_cut(ranks: int, found: list[tuple[str, str]]) -> None:
    """768 / 4 = 192 = 1.5 blocks of 128: the engine refuses gate and up of such experts."""
    assert codes(MOE | fp8(block=True), H200, "0.32.0", ranks) == found


def test_experts_that_stay_whole_need_no_whole_blocks() -> None:
    (found,) = said(MOE | fp8(block=True), H200, "0.32.0", 8)
    assert "engine.parallel: {tensor: 2, replicas: 4}" in found.fix
    assert "enable-expert-parallel: true" in found.fix
    (groups,) = said(MOE | packed(4, 128), H200, "0.32.0", 8)
    assert "enable-expert-parallel: true" in groups.fix
    (dense,) = said(QWEN_72B | awq(128), A100, "0.24.0", 4)
    assert "expert" not in dense.fix


def test_our_own_formats_are_judged_alike() -> None:
    """576 = 4.5 x 128, and 960 outputs of q, k and v = 7.5 x 128."""
    weights = "{weights: int4-rtn}"
    assert codes(SMOLLM2, ADA, "0.22.1", quantization=weights) == ERROR
    (slow,) = said(SMOLLM2, ADA, "0.33.0", quantization=weights)
    assert (slow.code, "1,024 outputs" in slow.detail, slow.fix.startswith("set quantization.weights: fp8")) == (
        "DC581", True, True,
    )  # fmt: skip
    assert codes(QWEN_7B, ADA, "0.22.1", quantization=weights) == []


def test_act_order_is_no_matter_for_marlin_but_for_others() -> None:
    assert codes(QWEN_7B | gptq(desc_act=True), A100, "0.23.0", 2) == []
    layers = stored(facts_of(QWEN_7B | gptq(desc_act=True)), case_of(facts_of(QWEN_7B | gptq(desc_act=True))).choices)
    assert {one.layer.act_order for one in layers} == {True}


def test_joined_layers_are_one_matrix() -> None:
    facts = facts_of(QWEN_7B | gptq())
    layers = {one.module: one for one in stored(facts, case_of(facts).choices)}
    assert layers["q_proj"].layer.outputs == layers["k_proj"].layer.outputs == 3584 + 2 * 512
    assert layers["gate_proj"].layer.outputs == 2 * 18944
    assert (layers["down_proj"].layer.inputs, layers["down_proj"].layer.group) == (18944, 128)


def test_gptq_with_zero_points_or_other_bits() -> None:
    half = "{source: org/model, dtype: float16}"
    for config in (QWEN_7B | gptq(3), QWEN_7B | gptq(2), QWEN_7B | gptq(4, sym=False)):
        assert codes(config, A100, "0.20.2", model=half) == SLOW
        assert codes(config, A100, "0.32.0", model=half) == ERROR
        (found,) = said(config, A100, "0.20.2")
        assert "GPTQ, the one kernel for it, reads float16 alone" in found.detail


def test_a_quantized_checkpoint_quantized_again_has_no_layers_to_judge() -> None:
    """DC250 says all that there is to say: no layer of it is ever made."""
    again = case_of(facts_of(QWEN_7B | awq(), (H200,)), quantization="{weights: fp8}")
    assert stored(again.facts, again.choices) == []
    assert stored(again.facts, case_of(facts_of(QWEN_7B | awq(), (H200,))).choices)
