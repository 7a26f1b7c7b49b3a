"""config.json -> dimensions and shapes: published parameter counts, and refusal of what is not known."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import CONFIG, JSON, model_files, put, safetensors, tensors_of

from deployc.facts.architecture import FAMILIES, WHOLES, architecture
from deployc.facts.architecture.classes import defaults
from deployc.facts.architecture.keys import ALSO
from deployc.facts.architecture.read import CHANGES
from deployc.facts.faults import Fault
from deployc.facts.folder import Folder
from deployc.facts.model import from_config, model_facts
from deployc.facts.shapes import shapes
from deployc.types.groups import Tensor


def config(
    model_type: str, hidden: int, inner: int, layers: int, heads: int, kv_heads: int | None, vocab: int, **other: Any
) -> dict[str, Any]:
    return {
        "model_type": model_type, "architectures": [FAMILIES[model_type].name], "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": vocab, "max_position_embeddings": 32768, "dtype": "bfloat16",
    } | other  # fmt: skip


# the models' own config.json and the parameter counts that their cards or safetensors indexes state
PUBLISHED = [
    ("Qwen2.5-0.5B", config("qwen2", 896, 4864, 24, 14, 2, 151936, tie_word_embeddings=True), 494_032_768),
    ("Qwen2.5-7B", config("qwen2", 3584, 18944, 28, 28, 4, 152064), 7_615_616_512),
    ("Qwen2.5-72B", config("qwen2", 8192, 29568, 80, 64, 8, 152064), 72_706_203_648),
    ("Qwen3-8B", config("qwen3", 4096, 12288, 36, 32, 8, 151936, head_dim=128), 8_190_735_360),
    ("Qwen3-0.6B", config("qwen3", 1024, 3072, 28, 16, 8, 151936, head_dim=128, tie_word_embeddings=True), 596_049_920),
    ("Llama-3.1-8B", config("llama", 4096, 14336, 32, 32, 8, 128256), 8_030_261_248),
    ("Llama-3.1-70B", config("llama", 8192, 28672, 80, 64, 8, 128256), 70_553_706_496),
    ("Llama-2-7B", config("llama", 4096, 11008, 32, 32, None, 32000), 6_738_415_616),
    ("SmolLM2-135M", config("llama", 576, 1536, 30, 9, 3, 49152, tie_word_embeddings=True), 134_515_008),
    ("Mistral-7B-v0.3", config("mistral", 4096, 14336, 32, 32, 8, 32768, sliding_window=None), 7_248_023_552),
    ("Phi-3-mini-128k", config("phi3", 3072, 8192, 32, 32, 32, 32064, sliding_window=262144,
                               max_position_embeddings=131072), 3_821_079_552),
    ("Mixtral-8x7B", config("mixtral", 4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2),
     46_702_792_704),
    ("Qwen3-30B-A3B", config("qwen3_moe", 2048, 6144, 48, 32, 4, 151936, head_dim=128, num_experts=128,
                             num_experts_per_tok=8, moe_intermediate_size=768), 30_532_122_624),
    ("Qwen1.5-MoE-A2.7B", config("qwen2_moe", 2048, 5632, 24, 16, 16, 151936, num_experts=60, num_experts_per_tok=4,
                                 moe_intermediate_size=1408, shared_expert_intermediate_size=5632), 14_315_784_192),
    ("SmolLM3-3B", config("smollm3", 2048, 11008, 36, 16, 4, 128256, tie_word_embeddings=True), 3_075_098_624),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "parameters"), PUBLISHED, ids=[p[0] for p in PUBLISHED])
def test_published_parameter_counts(name: str, values: dict[str, Any], parameters: int) -> None:
    assert sum(group.elements for group in shapes(values, architecture(values))) == parameters


def test_dimensions() -> None:
    arch = architecture(PUBLISHED[1][1] | {"rope_theta": 1e6})
    assert (arch.layers, arch.heads, arch.kv_heads, arch.head_dim, arch.attention) == (28, 28, 4, 128, "gqa")
    assert (arch.tie_word_embeddings, arch.dtype, arch.experts) == (False, "bfloat16", 0)
    assert arch.rope == {"rope_theta": 1e6}
    assert architecture(PUBLISHED[7][1]).attention == "mha"
    assert architecture(PUBLISHED[1][1] | {"num_key_value_heads": 1}).attention == "mqa"
    moe = architecture(PUBLISHED[12][1])
    assert (moe.experts, moe.experts_per_token, moe.moe_intermediate_size) == (128, 8, 768)


def test_both_spellings() -> None:
    old = {k: v for k, v in CONFIG.items() if k != "torch_dtype"} | {"torch_dtype": "float16"}
    assert architecture(old).dtype == "float16"
    assert architecture(old | {"dtype": "bfloat16"}).dtype == "bfloat16"
    scaled = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    want = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "rope_theta": 1e6}
    assert architecture(CONFIG | {"rope_scaling": scaled}).rope == want
    assert architecture(CONFIG | {"rope_parameters": want}).rope == want


def test_a_dtype_that_the_config_leaves_out_is_that_of_the_weights() -> None:
    silent = {k: v for k, v in CONFIG.items() if k != "torch_dtype"}
    assert architecture(silent, "F16").dtype == "float16"
    with pytest.raises(Fault, match=r"DC210.*dtype"):
        architecture(silent)


DIMENSIONS = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
              "max_position_embeddings", "model_type", "architectures"]  # fmt: skip


@pytest.mark.parametrize("key", DIMENSIONS)
@pytest.mark.parametrize("value", [None, 0, -1, 1.5, "64", True])
def test_no_dimension_is_assumed(key: str, value: Any) -> None:
    changed = {k: v for k, v in CONFIG.items() if k != key or value is not None}
    if value is not None:
        changed[key] = value
    with pytest.raises(Fault) as fault:
        architecture(changed)
    assert fault.value.diagnostic.code in ("DC208", "DC210")
    assert f"`{key}`" in fault.value.diagnostic.detail


@pytest.mark.parametrize(
    ("change", "code", "key"),
    [
        ({"model_type": "rwkv"}, "DC208", "model_type"),
        ({"kv_lora_rank": 512}, "DC209", "kv_lora_rank"),
        ({"vision_config": {"depth": 32}}, "DC209", "vision_config"),
        ({"text_config": {"hidden_size": 64}}, "DC209", "text_config"),
        ({"num_kv_shared_layers": 1}, "DC209", "num_kv_shared_layers"),
        ({"attention_chunk_size": 64}, "DC209", "attention_chunk_size"),
        ({"use_cla": True}, "DC209", "use_cla"),
        ({"architectures": ["Qwen2ForSequenceClassification"]}, "DC209", "architectures"),
        ({"use_sliding_window": True, "max_window_layers": 1}, "DC209", "max_window_layers"),
        ({"layer_types": ["full_attention"]}, "DC210", "layer_types"),
        ({"layer_types": ["full_attention", 1]}, "DC210", "layer_types"),
        ({"layer_types": ["full_attention", "cross_attention"]}, "DC209", "layer_types"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "DC209", "layer_types"),
        ({"layer_types": ["linear_attention", "full_attention"]}, "DC209", "layer_types"),
        ({"num_experts": 8}, "DC209", "num_experts"),
        ({"mamba_d_state": 16}, "DC209", "mamba_d_state"),
        ({"rope_parameters": {"local": {"rope_theta": 1.0}}}, "DC209", "rope_parameters"),
        ({"rope_scaling": "yarn"}, "DC210", "rope_scaling"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 1e308}}, "DC210", "rope_scaling.factor"),
        ({"rope_scaling": {"rope_type": "linear", "factor": float("nan")}}, "DC210", "rope_scaling.factor"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": -4.0}}, "DC210", "rope_scaling.factor"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": "4"}}, "DC210", "rope_scaling.factor"),
        ({"num_key_value_heads": 3}, "DC210", "num_key_value_heads"),
        ({"hidden_size": 66}, "DC210", "head_dim"),
        ({"tie_word_embeddings": "no"}, "DC210", "tie_word_embeddings"),
        ({"torch_dtype": "int8"}, "DC210", "dtype"),
        ({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}, "DC210", "head_dim"),
        ({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": "all"}, "DC210",
         "sliding_window"),
        ({"model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "tie_word_embeddings": None}, "DC210",
         "tie_word_embeddings"),
        ({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "sliding_window": None}, "DC210",
         "num_local_experts"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_by_its_key(change: dict[str, Any], code: str, key: str) -> None:
    with pytest.raises(Fault) as fault:
        architecture(CONFIG | change)
    assert fault.value.diagnostic.code == code
    assert f"`{key}`" in fault.value.diagnostic.detail


NESTED = {
    "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "dtype": "bfloat16",
    "text_config": {"model_type": "gemma3_text"}, "vision_config": {"model_type": "siglip_vision_model"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code", "key"),
    [
        ({"text_config": None}, "DC210", "text_config"),
        ({"text_config": 3}, "DC210", "text_config"),
        ({"text_config": {"model_type": "rwkv"}}, "DC208", "text_config.model_type"),
        ({"text_config": {"model_type": ["gemma3_text"]}}, "DC210", "text_config.model_type"),
        ({"text_config": {"num_hidden_layers": 0}}, "DC210", "text_config.num_hidden_layers"),
        ({"text_config": {"head_dim": "256"}}, "DC210", "text_config.head_dim"),
        ({"text_config": {"kv_lora_rank": 512}}, "DC209", "text_config.kv_lora_rank"),
        ({"text_config": {"layer_types": ["linear_attention"] * 26}}, "DC209", "text_config.layer_types"),
        ({"text_config": {"sliding_window_pattern": 0}}, "DC210", "text_config.sliding_window_pattern"),
        ({"vision_config": [1]}, "DC210", "vision_config"),
        ({"vision_config": {"depth": -1}}, "DC210", "vision_config.depth"),
        ({"vision_config": {"image_size": "large"}}, "DC210", "vision_config.image_size"),
        ({"mm_tokens_per_image": 1.5}, "DC210", "mm_tokens_per_image"),
        ({"architectures": ["Gemma3ForCausalLM"]}, "DC209", "architectures"),
    ],
)  # fmt: skip
def test_what_is_not_known_in_a_nested_object_is_refused_by_its_dotted_key(
    change: dict[str, Any], code: str, key: str
) -> None:
    assert architecture(NESTED).layers == 26  # what Gemma3TextConfig documents
    with pytest.raises(Fault) as fault:
        architecture(NESTED | change)
    assert fault.value.diagnostic.code == code
    assert f"`{key}`" in fault.value.diagnostic.detail
    assert f"--assume {key}=" in fault.value.diagnostic.fix


def test_of_a_rope_for_each_kind_of_layer_that_of_full_attention_counts() -> None:
    both = {"full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default"}}
    arch = architecture(NESTED | {"text_config": {"rope_parameters": both}})
    assert arch.rope == {"rope_type": "linear", "factor": 8.0}


def test_the_reference_names_every_family() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text()
    named = {name for row in text.splitlines() if row.startswith("| ") for name in re.split(r"[ |,]+", row)}
    assert {*FAMILIES, *WHOLES} <= named


KEYS = [*CONFIG, "dtype", "head_dim", "attention_bias", "mlp_bias", "qkv_bias", "layer_types", "rope_scaling",
        "rope_parameters", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "mlp_only_layers",
        "decoder_sparse_step", "shared_expert_intermediate_size", "quantization_config", "text_config"]  # fmt: skip
BASES = [
    CONFIG,
    config("llama", 64, 96, 2, 4, 2, 320),
    config("qwen2_moe", 64, 96, 2, 4, 2, 320, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
           shared_expert_intermediate_size=32),
]  # fmt: skip
EVERY_KEY = sorted(
    {*KEYS, *ALSO, *CHANGES, *(name for names in ALSO.values() for name in names), "vision_config", "audio_config",
     "per_layer_config", "index_head_dim", "index_topk_pattern", "no_rope_layers", "moe_layers", "mlp_layer_types",
     "hybrid_override_pattern", "layers_block_type", "attn_layer_indices", "full_attn_idxs", "conv_L_cache",
     "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_conv", "mamba_expand", "mamba_ssm_cache_dtype",
     "mamba_ssm_dtype", "sliding_window_pattern", "full_attention_interval", "expert_layer_period",
     "first_k_dense_replace", "image_grid_pinpoints", "spatial_merge_size", "llm_config", "model_max_length"}
)  # fmt: skip
VALUES = JSON | st.integers(1, 64) | st.sampled_from(["sliding_attention", "MM*-E", "mamba", "qwen3_vl_text", "llama"])


@given(st.sampled_from(BASES), st.dictionaries(st.sampled_from(KEYS), JSON, min_size=1, max_size=3))
def test_an_odd_config_is_a_fault_or_an_architecture_and_never_a_traceback(
    base: dict[str, Any], change: dict[str, Any]
) -> None:
    changed = base | change
    try:
        assert shapes(changed, architecture(changed))
    except Fault as fault:
        assert fault.diagnostic.code in ("DC208", "DC209", "DC210")
        assert fault.diagnostic.fix


@given(
    st.sampled_from(sorted({*FAMILIES, *WHOLES})),
    st.dictionaries(st.sampled_from(EVERY_KEY), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(EVERY_KEY), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(["size", "max_pixels", "max_patches"]), VALUES, max_size=2),
)
def test_any_config_of_any_family_is_a_fault_or_an_architecture(
    model_type: str, change: dict[str, Any], inner: dict[str, Any], preprocessor: dict[str, Any]
) -> None:
    """Starts from what the family's class documents, so that the reading goes deep before it meets what is odd."""
    whole = WHOLES.get(model_type)
    text = dict(defaults(whole.text if whole else model_type))
    changed = {"model_type": model_type, "architectures": [(whole or FAMILIES[model_type]).name], "dtype": "bfloat16"}
    if whole:
        part = {"text_config": text | inner, "llm_config": text | inner, "vision_config": inner, "audio_config": inner}
        changed |= part | change
    else:
        changed |= text | inner | change
    try:
        arch = architecture(changed, preprocessor=preprocessor)
    except Fault as fault:
        assert fault.diagnostic.code in ("DC208", "DC209", "DC210")
        assert "--assume" in fault.diagnostic.fix
    else:
        numbers = [n for cache in arch.caches for n in cache.layers]
        assert all(0 <= n < arch.layers for n in numbers)
        assert all(list(cache.layers) == sorted(set(cache.layers)) for cache in arch.caches)


@given(st.dictionaries(st.text(max_size=4) | st.sampled_from(EVERY_KEY), JSON, max_size=6))
def test_any_object_is_a_fault_or_an_architecture(anything: dict[str, Any]) -> None:
    with contextlib.suppress(Fault):
        assert architecture(anything).layers > 0


def test_shapes_of_a_quantized_checkpoint_cannot_be_derived() -> None:
    quantized = CONFIG | {"quantization_config": {"quant_method": "gptq"}}
    with pytest.raises(Fault, match="quantization_config"):
        from_config(quantized, source="a/b", hub="huggingface", provenance="", chat_template=False)


def test_layers_without_experts() -> None:
    moe = PUBLISHED[12][1] | {"num_hidden_layers": 4, "mlp_only_layers": [0], "decoder_sparse_step": 2}
    names = {g.pattern for g in shapes(moe, architecture(moe))}
    assert "model.layers.{0,2}.mlp.up_proj.weight" in names
    assert "model.layers.{1,3}.mlp.experts.{0-127}.up_proj.weight" in names


def folder_of(path: Path, files: dict[str, bytes]) -> Folder:
    return Folder(put(path, files), "./m")


def changed_weights(tensors: list[Tensor]) -> dict[str, bytes]:
    return model_files() | {"model.safetensors": safetensors(tensors)}


def test_weights_that_are_not_those_of_the_config(tmp_path: Path) -> None:
    tensors = tensors_of(CONFIG)
    wider: list[Tensor] = [(n, d, (s[0] + 1, *s[1:])) if n == "lm_head.weight" else (n, d, s) for n, d, s in tensors]
    for number, (case, says) in enumerate(
        (
            (tensors[1:], f"{tensors[0][0]} {list(tensors[0][2])} is not in the weights"),
            (wider, "lm_head.weight is [321, 64], and [320, 64] by config.json"),
            ([*tensors, ("model.extra", "F32", (1,))], "e.g. model.extra"),
        )
    ):
        folder = tmp_path / str(number)
        with pytest.raises(Fault) as fault:
            model_facts(folder_of(folder, changed_weights(case)), "./m")
        assert fault.value.diagnostic.code == "DC222"
        assert says in fault.value.diagnostic.detail


def test_known_extras_are_no_fault_and_tied_embeddings_count_once(tmp_path: Path) -> None:
    tied = CONFIG | {"tie_word_embeddings": True}
    tensors: list[Tensor] = [
        *tensors_of(tied),
        ("lm_head.weight", "BF16", (320, 64)),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", (8,)),
    ]
    files = changed_weights(tensors) | {"config.json": json.dumps(tied).encode()}
    facts, notes = model_facts(folder_of(tmp_path, files), "./m")
    assert facts.parameters == sum(g.elements for g in shapes(tied, architecture(tied))) + 8
    assert notes == []
