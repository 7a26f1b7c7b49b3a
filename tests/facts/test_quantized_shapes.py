"""Tensors of quantized checkpoints from config.json alone: one layer of each format by hand, and what stays 16 bit."""

from __future__ import annotations

from typing import Any

import pytest
from configured import QWEN_7B
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.facts.architecture import architecture
from deployc.facts.faults import Fault
from deployc.facts.model import from_config
from deployc.facts.shapes import shapes
from deployc.types.facts import TensorGroup

TINY = QWEN_7B | {
    "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 1024, "vocab_size": 1024,
}  # fmt: skip


def groups(said: dict[str, Any], config: dict[str, Any] = TINY) -> dict[str, TensorGroup]:
    made = shapes(config | {"quantization_config": said}, architecture(config))
    return {group.pattern: group for group in made}


def layer(said: dict[str, Any], module: str = "model.layers.{0-1}.mlp.down_proj") -> dict[str, Any]:
    """Parameter -> dtype and shape of one module: outputs 512, inputs 1024."""
    found = {name: group for name, group in groups(said).items() if name.startswith(module + ".")}
    return {name.removeprefix(module + "."): (group.dtype, group.shape) for name, group in found.items()}


def compressed(form: str, weights: dict[str, Any], inputs: Any = None, **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {
        "quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
        "config_groups": {"group_0": group}, **more,
    }  # fmt: skip


INT4 = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128}
FLOAT8 = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"}
DYNAMIC = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
# 512 x 1024 elements: 65,536 words of 4 bit; 8 groups of 128 inputs
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gptq": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"qweight": ("I32", (128, 512)), "qzeros": ("I32", (8, 64)), "scales": ("F16", (8, 512)),
         "g_idx": ("I32", (1024,))},
    ),
    "gptq a scale a row": (
        {"quant_method": "gptq", "bits": 8, "group_size": -1},
        {"qweight": ("I32", (256, 512)), "qzeros": ("I32", (1, 128)), "scales": ("F16", (1, 512)),
         "g_idx": ("I32", (1024,))},
    ),
    "awq": (
        {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"},
        {"qweight": ("I32", (1024, 64)), "qzeros": ("I32", (16, 64)), "scales": ("F16", (16, 512))},
    ),
    "auto-round": (
        {"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format": "auto_round:auto_awq"},
        {"qweight": ("I32", (1024, 64)), "qzeros": ("I32", (8, 64)), "scales": ("F16", (8, 512))},
    ),
    "w4a16": (
        compressed("pack-quantized", INT4),
        {"weight_packed": ("I32", (512, 128)), "weight_scale": ("BF16", (512, 8)), "weight_shape": ("I64", (2,))},
    ),
    "w4a16 asymmetric, act-order": (
        compressed("pack-quantized", INT4 | {"symmetric": False, "actorder": "group"}),
        {"weight_packed": ("I32", (512, 128)), "weight_scale": ("BF16", (512, 8)), "weight_shape": ("I64", (2,)),
         "weight_zero_point": ("I32", (64, 8)), "weight_g_idx": ("I32", (1024,))},
    ),
    "w8a16 a scale a row": (
        compressed("pack-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}),
        {"weight_packed": ("I32", (512, 256)), "weight_scale": ("BF16", (512, 1)), "weight_shape": ("I64", (2,))},
    ),
    "fp8 a scale a row": (
        compressed("float-quantized", FLOAT8, DYNAMIC),
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("BF16", (512, 1))},
    ),
    "fp8 a scale a tensor, static": (
        compressed("float-quantized", FLOAT8 | {"strategy": "tensor"}, DYNAMIC | {"dynamic": False}),
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("BF16", (1,)), "input_scale": ("F32", (1,))},
    ),
    "fp8 blocks of compressed-tensors": (
        compressed("float-quantized", FLOAT8 | {"strategy": "block", "block_structure": [128, 128]}, DYNAMIC),
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("BF16", (4, 8))},
    ),
    "w8a8": (
        compressed("int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}, DYNAMIC),
        {"weight": ("I8", (512, 1024)), "weight_scale": ("BF16", (512, 1))},
    ),
    "nvfp4": (
        compressed("nvfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "tensor_group",
                                            "group_size": 16}, {"num_bits": 4, "dynamic": "local"}),
        {"weight_packed": ("U8", (512, 512)), "weight_scale": ("F8_E4M3", (512, 64)),
         "weight_global_scale": ("F32", (1,)), "input_global_scale": ("F32", (1,))},
    ),
    "fp8 blocks": (
        {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale_inv": ("F32", (4, 8))},
    ),
    "fp8 static": (
        {"quant_method": "fp8", "activation_scheme": "static"},
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("F32", (1,)), "input_scale": ("F32", (1,))},
    ),
    "fbgemm": (
        {"quant_method": "fbgemm_fp8"},
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("F32", (512, 1))},
    ),
    "nf4, scales quantized again": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
         "bnb_4bit_use_double_quant": True},
        {"weight": ("U8", (262_144, 1)), "weight.absmax": ("U8", (8192,)), "weight.quant_map": ("F32", (16,)),
         "weight.nested_absmax": ("F32", (32,)), "weight.nested_quant_map": ("F32", (256,))},
    ),
    "nf4": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"weight": ("U8", (262_144, 1)), "weight.absmax": ("F32", (8192,)), "weight.quant_map": ("F32", (16,))},
    ),
    "bitsandbytes 8 bit": (
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {"weight": ("I8", (512, 1024)), "SCB": ("F32", (512,))},
    ),
    "modelopt fp8": (
        {"quant_method": "modelopt", "quant_algo": "FP8"},
        {"weight": ("F8_E4M3", (512, 1024)), "weight_scale": ("F32", (1,)), "input_scale": ("F32", (1,))},
    ),
    "modelopt nvfp4, as in hf_quant_config.json": (
        {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}},
        {"weight": ("U8", (512, 512)), "weight_scale": ("F8_E4M3", (512, 64)), "weight_scale_2": ("F32", (1,)),
         "input_scale": ("F32", (1,))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_layer_of_each_format(case: str) -> None:
    said, parts = CASES[case]
    assert layer(said) == parts


@pytest.mark.parametrize("case", [c for c in CASES if "modelopt fp8" not in c])
def test_tables_and_norms_stay_and_so_does_the_output_layer(case: str) -> None:
    found = groups(CASES[case][0])
    for name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        assert found[name].dtype == "BF16"
    assert found["model.layers.{0-1}.self_attn.q_proj.bias"].shape == (512,)


def test_gptq_quantizes_the_output_layer_where_it_says_so() -> None:
    said = {"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}
    assert layer(said, "lm_head")["qweight"] == ("I32", (64, 1024))


def weights(said: dict[str, Any]) -> set[str]:
    """Patterns of matrices that stay 16 bit, tables left out."""
    return {
        name for name, group in groups(said).items()
        if group.dtype == "BF16" and len(group.shape) == 2 and "scale" not in name and name.startswith("model.layers")
    }  # fmt: skip


DOWN_0, DOWN = "model.layers.0.mlp.down_proj.weight", "model.layers.{0-1}.mlp.down_proj.weight"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (compressed("float-quantized", FLOAT8) | {"ignore": ["model.layers.0.mlp.down_proj"]}, {DOWN_0}),
        (compressed("float-quantized", FLOAT8) | {"ignore": [r"re:.*\.down_proj$"]}, {DOWN}),
        (compressed("float-quantized", FLOAT8) | {"ignore": ["own_proj"]}, set()),  # part of a part
        ({"quant_method": "fp8", "modules_to_not_convert": ["down_proj"]}, {DOWN}),
        ({"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["own_proj"]}, {DOWN}),  # any part of the name
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["down_proj"]}, {DOWN}),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["model.layers.0.*down_proj"]}, {DOWN_0}),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {r"-:.*\.down_proj": {}}}, {DOWN}),
        ({"quant_method": "auto-round", "bits": 4, "extra_config": {"model.layers.0.mlp.down_proj": {"bits": 16}}},
         {DOWN_0}),
    ],
)  # fmt: skip
def test_what_is_named_stays_at_16_bit(said: dict[str, Any], left: set[str]) -> None:
    assert weights(said) == left


def test_gptq_may_have_other_bits_for_some_layers() -> None:
    said = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {r"+:.*\.1\.mlp\.down": {"bits": 8}}}
    found = groups(said)
    assert found["model.layers.0.mlp.down_proj.qweight"].shape == (128, 512)
    assert found["model.layers.1.mlp.down_proj.qweight"].shape == (256, 512)


def test_groups_of_compressed_tensors_go_by_target() -> None:
    eight = {"targets": [r"re:.*down_proj"], "weights": FLOAT8, "format": "float-quantized"}
    said = compressed("mixed-precision", INT4)
    said["config_groups"]["group_0"]["format"] = "pack-quantized"
    said["config_groups"]["group_1"] = eight
    found = groups(said)
    assert found["model.layers.{0-1}.mlp.down_proj.weight"].dtype == "F8_E4M3"
    assert found["model.layers.{0-1}.mlp.up_proj.weight_packed"].shape == (1024, 64)


def test_gpt_oss_stores_blocks_of_its_experts() -> None:
    config = {
        "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 2,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
        "vocab_size": 201088, "tie_word_embeddings": False, "max_position_embeddings": 131072, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"], "num_local_experts": 32, "num_experts_per_tok": 4,
        "torch_dtype": "bfloat16", "rope_theta": 150000.0,
    }  # fmt: skip
    found = groups({"quant_method": "mxfp4"}, config)
    experts = "model.layers.{0-1}.mlp.experts."
    assert found[experts + "gate_up_proj_blocks"].shape == (32, 5760, 90, 16)
    assert found[experts + "gate_up_proj_scales"].shape == (32, 5760, 90)
    assert found[experts + "down_proj_blocks"].shape == (32, 2880, 90, 16)
    assert found[experts + "down_proj_bias"].dtype == "BF16"
    assert found["model.layers.{0-1}.self_attn.q_proj.weight"].dtype == "BF16"


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"quant_method": "aqlm"}, "quantization_config.quant_method"),
        ({}, "quantization_config"),
        ({"quant_method": "gptq", "bits": 5}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "quantization_config.checkpoint_format"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "quantization_config.version"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "quantization_config.quant_algo"),
        ({"quant_method": "fp8", "weight_block_size": 128}, "quantization_config.weight_block_size"),
        (compressed("marlin-24", INT4), "quantization_config.config_groups.group_0"),
        (compressed("float-quantized", FLOAT8, ignore=["re:("]), "quantization_config"),
    ],
)
def test_what_is_not_known_is_refused_by_its_key(said: dict[str, Any], key: str) -> None:
    config = TINY | {"quantization_config": said} if said else TINY | {"quantization_config": ["x"]}
    with pytest.raises(Fault) as caught:
        shapes(config, architecture(config))
    assert caught.value.diagnostic.code == "DC209"
    assert f"`{key}`" in caught.value.diagnostic.detail


NAMES = ["lm_head", "re:.*mlp.*", "model.layers.0", "q_proj", "re:.*o_proj$"]


@given(ignore=st.lists(st.sampled_from(NAMES), max_size=5))
@settings(max_examples=30, deadline=None)
def test_what_is_ignored_never_makes_a_checkpoint_smaller(ignore: list[str]) -> None:
    sizes = []
    for count in range(len(ignore) + 1):
        said = compressed("float-quantized", FLOAT8) | {"ignore": ignore[:count]}
        sizes.append(sum(group.bytes for group in groups(said).values()))
    assert sizes == sorted(sizes)
    assert sizes[-1] <= sum(group.bytes for group in shapes(TINY, architecture(TINY)))


@pytest.mark.parametrize("case", [c for c in CASES if "modelopt fp8" not in c])
def test_a_quantized_model_has_as_many_parameters_as_its_16_bit_one(case: str) -> None:
    said, _ = CASES[case]
    quantized = from_config(TINY | {"quantization_config": said}, source="x/y", hub="huggingface", provenance="",
                            chat_template=False)  # fmt: skip
    plain = from_config(TINY, source="x/y", hub="huggingface", provenance="", chat_template=False)
    assert quantized.parameters == plain.parameters
