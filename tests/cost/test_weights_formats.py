"""What the engine holds of a quantized layer, from what the checkpoint stores: sums by hand in the comments."""

from __future__ import annotations

from typing import Any

import pytest
from configured import QWEN_7B, card, choices_of, facts_of
from weighing import A100, H200, facts_with, held_bytes

from deployc.cost.weights import linears, weight_bytes

DOWN = "model.layers.0.mlp.down_proj."
OUT, IN = 512, 1024  # outputs and inputs of the layer
WORDS = OUT * IN // 8  # int32 words of 4-bit elements
GROUPS = IN // 128


def stored(**parts: tuple[str, tuple[int, ...]]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {DOWN + name.replace("__", "."): part for name, part in parts.items()}


FP8 = stored(weight=("F8_E4M3", (OUT, IN)), weight_scale=("BF16", (OUT, 1)))
PACKED = stored(weight_packed=("I32", (OUT, IN // 8)), weight_scale=("BF16", (OUT, GROUPS)), weight_shape=("I64", (2,)))
ZEROS = stored(weight_zero_point=("I32", (OUT // 8, GROUPS)))
GPTQ = stored(
    qweight=("I32", (IN // 8, OUT)), qzeros=("I32", (GROUPS, OUT // 8)), scales=("F16", (GROUPS, OUT)),
    g_idx=("I32", (IN,)),
)  # fmt: skip
AWQ = stored(qweight=("I32", (IN, OUT // 8)), qzeros=("I32", (GROUPS, OUT // 8)), scales=("F16", (GROUPS, OUT)))


def gptq(**keys: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, **keys}}


def test_scales_of_bytes_are_held_in_float32_and_of_words_in_the_served_type() -> None:
    assert held_bytes(FP8) == OUT * IN + 4 * OUT
    assert held_bytes(PACKED) == 4 * WORDS + 2 * OUT * GROUPS + 16


def test_block_and_tensor_scales() -> None:
    block = stored(weight=("F8_E4M3", (OUT, IN)), weight_scale_inv=("F32", (OUT // 128, IN // 128)))
    assert held_bytes(block) == OUT * IN + 4 * 4 * 8
    assert held_bytes(block, tensor_parallel_size=2) == OUT * IN // 2 + 4 * 4 * 4
    tensor = stored(weight=("F8_E4M3", (OUT, IN)), weight_scale=("F32", (1,)), input_scale=("F32", (1,)))
    assert held_bytes(tensor) == OUT * IN + 4 + 4


def test_row_parallel_splits_inputs_and_their_groups_but_no_scale_of_a_row() -> None:
    assert held_bytes(FP8, tensor_parallel_size=4) == OUT * IN // 4 + 4 * OUT
    assert held_bytes(PACKED, tensor_parallel_size=4) == WORDS + 2 * OUT * GROUPS // 4 + 16


def test_zero_points_stay_packed_with_marlin_and_are_scaled_with_machete() -> None:
    # 512 x 8 zero points: half a byte each in words; times the scale, 16 bit each (Machete, compute capability 9.0)
    assert held_bytes({**PACKED, **ZEROS}) - held_bytes(PACKED) == OUT * GROUPS // 2
    assert held_bytes({**PACKED, **ZEROS}, H200) - held_bytes(PACKED, H200) == 2 * OUT * GROUPS


def test_gptq_without_act_order_needs_no_order_and_no_symmetric_zeros_with_marlin() -> None:
    words, scales, zeros = 4 * WORDS, 2 * OUT * GROUPS, OUT * GROUPS // 2
    assert held_bytes(GPTQ, keys=gptq()) == words + scales
    assert held_bytes(GPTQ, H200, keys=gptq()) == words + scales + zeros + 4 * IN  # Machete leaves both where they are
    assert held_bytes(GPTQ, keys=gptq(sym=False)) == words + scales + zeros


def test_act_order_holds_the_order_twice_and_all_scales_on_every_rank() -> None:
    keys = gptq(desc_act=True, sym=False)
    words, scales, zeros = 4 * WORDS, 2 * OUT * GROUPS, OUT * GROUPS // 2
    assert held_bytes(GPTQ, keys=keys) == words + scales + zeros + 8 * IN
    assert held_bytes(GPTQ, keys=keys, tensor_parallel_size=2) == words // 2 + scales + zeros + 8 * IN // 2


def test_awq_is_split_along_its_inputs() -> None:
    keys = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}}
    whole = 4 * WORDS + 2 * OUT * GROUPS + OUT * GROUPS // 2
    assert held_bytes(AWQ, keys=keys) == whole
    assert held_bytes(AWQ, keys=keys, tensor_parallel_size=2) == whole // 2


def test_bitsandbytes_widens_its_scales_and_drops_what_quantized_them() -> None:
    blocks = OUT * IN // 64
    four = stored(
        weight=("U8", (OUT * IN // 2, 1)), weight__absmax=("U8", (blocks,)), weight__quant_map=("F32", (16,)),
        weight__nested_absmax=("F32", (blocks // 256,)), weight__nested_quant_map=("F32", (256,)),
        weight__quant_state__bitsandbytes__nf4=("U8", (90,)),
    )  # fmt: skip
    assert held_bytes(four) == OUT * IN // 2 + 4 * blocks + 4 * 16
    assert held_bytes(four, tensor_parallel_size=2) == OUT * IN // 4 + 2 * blocks + 4 * 16
    eight = stored(weight=("I8", (OUT, IN)), SCB=("F32", (OUT,)))
    assert held_bytes(eight) == OUT * IN + 4 * OUT


def test_scales_of_nvfp4_are_padded_to_tiles() -> None:
    # 300 rows become 384 = 3 x 128, 1040 / 16 = 65 columns become 68
    odd = stored(
        weight_packed=("U8", (300, 520)), weight_scale=("F8_E4M3", (300, 65)), weight_global_scale=("F32", (1,)),
        input_global_scale=("F32", (1,)),
    )  # fmt: skip
    assert held_bytes(odd) == 300 * 520 + 384 * 68 + 8


def test_asymmetric_int8_activations_add_an_int32_a_row() -> None:
    inputs = {"num_bits": 8, "type": "int", "symmetric": False}
    groups = {"group_0": {"targets": ["Linear"], "input_activations": inputs}}
    keys = {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": groups}}
    int8 = stored(weight=("I8", (OUT, IN)), weight_scale=("BF16", (OUT, 1)))
    assert held_bytes(int8, keys=keys) == held_bytes(int8) + 4 * OUT == OUT * IN + 8 * OUT


GPT_OSS = {
    **QWEN_7B, "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 60, "num_key_value_heads": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "tp", "part", "hidden"),
    [(A100, 1, 2944, 3072), (A100, 2, 1536, 3072), (card(capability=(10, 0)), 1, 3072, 3072)],
)  # Marlin: 2880 = 22.5 x 128, 1440 = 11.25 x 128 and 11.25 x 256 hidden; FlashInfer: both to 256
def test_mxfp4_experts_are_padded(gpu: Any, tp: int, part: int, hidden: int) -> None:
    experts = "model.layers.0.mlp.experts."
    tensors = {
        experts + "gate_up_proj_blocks": ("U8", (32, 5760, 90, 16)),
        experts + "gate_up_proj_scales": ("U8", (32, 5760, 90)),
        experts + "gate_up_proj_bias": ("BF16", (32, 5760)),
        experts + "down_proj_blocks": ("U8", (32, 2880, 90, 16)),
        experts + "down_proj_scales": ("U8", (32, 2880, 90)),
        experts + "down_proj_bias": ("BF16", (32, 2880)),
    }
    elements = 32 * 3 * part * hidden
    biases = 2 * 32 * (5760 // tp + 2880)
    held = held_bytes(tensors, gpu, config=GPT_OSS, tensor_parallel_size=tp)
    assert held == elements // 2 + elements // 32 + biases


@pytest.mark.parametrize(("version", "stay"), [("0.19.0", 2944), ("0.24.0", 2944), ("0.25.1", 0)])
def test_triton_lays_scales_out_anew_and_older_versions_keep_them_as_loaded_too(version: str, stay: int) -> None:
    # H100, two ranks: 1440 becomes 1472; the new scales have 3072 of 2944 rows, the biases are float32
    experts = "model.layers.0.mlp.experts."
    tensors = {
        experts + "gate_up_proj_blocks": ("U8", (32, 5760, 90, 16)),
        experts + "gate_up_proj_scales": ("U8", (32, 5760, 90)),
        experts + "gate_up_proj_bias": ("BF16", (32, 5760)),
    }
    facts = facts_with(tensors, GPT_OSS, H200, version, quantization_config={"quant_method": "mxfp4"})
    held = weight_bytes(facts, choices_of(tensor_parallel_size=2))
    assert held == 32 * (2944 * 2880 // 2 + (stay + 3072) * 90 + 4 * 2880)


LINEARS = 28 * (2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944)
ROWS = 28 * (3584 + 512 + 512 + 3584 + 18944 + 18944 + 3584)
REST = 2 * (7_615_616_512 - LINEARS)
SHAPES = 28 * 7 * 16  # two int64 for each packed layer


@pytest.mark.parametrize(
    ("weights", "size"),
    [
        ("fp8", LINEARS + 4 * ROWS),
        ("int8", LINEARS + 4 * ROWS),
        ("int8-weight-only", LINEARS + 2 * ROWS + SHAPES),
        ("int4-gptq", LINEARS // 2 + 2 * LINEARS // 128 + SHAPES),
        ("int4-rtn", LINEARS // 2 + 2 * LINEARS // 128 + SHAPES),
        ("int4-awq", LINEARS // 2 + 2 * LINEARS // 128 + LINEARS // 128 // 2 + SHAPES),
    ],
)
def test_what_our_quantizer_will_write(weights: str, size: int) -> None:
    facts = facts_of(QWEN_7B, (A100,), "0.25.1")
    assert weight_bytes(facts, choices_of(weights=weights)) == size + REST


def test_a_smaller_group_has_more_scales() -> None:
    facts = facts_of(QWEN_7B, (A100,), "0.25.1")
    finer = weight_bytes(facts, choices_of(weights="int4-gptq", group_size=32))
    assert finer == LINEARS // 2 + 2 * LINEARS // 32 + SHAPES + REST


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (FP8, {}),
        (GPTQ, {"quant_method": "gptq", "bits": 4}),
        (AWQ, {"quant_method": "awq", "bits": 4}),
        ({**PACKED, **ZEROS}, {"config_groups": {"group_0": {"weights": {"num_bits": 4}}}}),
        (stored(weight_packed=("U8", (OUT, IN // 2)), weight_scale=("F8_E4M3", (OUT, IN // 16))), {}),
    ],
)
def test_a_packed_layer_has_the_sizes_of_its_matrix(tensors: Any, said: dict[str, Any]) -> None:
    # what an unmerged adapter adapts: 512 outputs, a quarter of 1,024 inputs on each of four ranks
    facts = facts_with(tensors, quantization_config=said)
    assert [one[:3] for one in linears(facts, choices_of(tensor_parallel_size=4))] == [(OUT, IN // 4, 1)]
