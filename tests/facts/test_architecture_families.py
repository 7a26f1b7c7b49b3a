"""Every family against the configuration class of transformers: the same heads, layers and windows from its config.

The class is an independent reader of the same keys. Where vLLM reads differently the tables below say so.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from deployc.facts.architecture import FAMILIES, WHOLES, architecture

pytest.importorskip("transformers")

KIND = {
    "full": "full_attention", "sliding": "sliding_attention", "chunked": "chunked_attention",
    "state": "linear_attention", "mla": "full_attention",
}  # fmt: skip
NEEDS: dict[str, dict[str, Any]] = {  # what a class documents no default for
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "glm4v_moe": {"text_config": {"head_dim": 128}},
    "exaone_moe": {"sliding_window": 4096},
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "gemma4_text": {"global_head_dim": 512, "attention_k_eq_v": True, "num_global_key_value_heads": 2},
    "bloom": {"seq_length": 2048},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 16},
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "lfm2": {"full_attn_idxs": [2, 5]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
}
NO_CLASS = {"internlm2", "kimi_k2"}
LATENT = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa"}  # `head_dim` is the rotary part
TWICE = {"falcon_h1", "zamba2"}  # layers in which attention and state stand side by side


def made(model_type: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[model_type](**NEEDS.get(model_type, {}))
    if hasattr(config, "allow_global_per_layer_attribute_access"):
        config.allow_global_per_layer_attribute_access = True
    return config


def written(config: Any, name: str) -> dict[str, Any]:
    """The whole config.json, as save_pretrained writes every key of the class."""
    values: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
    return {"tie_word_embeddings": False} | values | {"architectures": [name], "dtype": "bfloat16"}


@pytest.mark.parametrize("model_type", sorted(FAMILIES.keys() - NO_CLASS))
def test_as_the_class_reads_it(model_type: str) -> None:
    config = made(model_type)
    arch = architecture(written(config, FAMILIES[model_type].name) | NEEDS.get(model_type, {}))
    assert arch.hidden_size == config.hidden_size
    assert arch.vocab_size == config.vocab_size
    assert (arch.layers, arch.heads) == (config.num_hidden_layers, config.num_attention_heads)
    if model_type not in LATENT and model_type != "gemma4_text":
        assert arch.kv_heads == (getattr(config, "num_key_value_heads", None) or _of_older(config))
        assert arch.head_dim == (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    kinds = getattr(config, "layer_types", None)
    if kinds and model_type not in LATENT | TWICE | {"nemotron_h"}:
        own = arch.layers - (getattr(config, "num_kv_shared_layers", 0) or 0)
        found = {n: KIND[cache.kind] for cache in arch.caches for n in cache.layers}
        assert [found[n] for n in range(own)] == ["linear_attention" if k == "conv" else k for k in kinds[:own]]
        assert len(found) == own


def _of_older(config: Any) -> int:
    """KV heads of classes without `num_key_value_heads`."""
    if config.model_type in ("falcon", "gpt_bigcode"):
        return 1  # multi_query
    return int(config.num_attention_heads)


def test_gemma4_heads_layer_by_layer() -> None:
    config = made("gemma4_text")
    arch = architecture(written(config, "Gemma4ForCausalLM"))
    for cache in arch.caches:
        for n in cache.layers:
            layer = config.per_layer_config[n]
            assert (cache.head_dim, cache.kv_heads) == (layer.head_dim, layer.num_key_value_heads)


def test_nemotron_blocks() -> None:
    config = made("nemotron_h")
    arch = architecture(written(config, "NemotronHForCausalLM"))
    found = Counter(KIND[cache.kind] for cache in arch.caches for _ in cache.layers)
    want = Counter(kind for kind in config.layer_types if kind in ("full_attention", "linear_attention"))
    assert (found, arch.layers) == (want, len(config.layer_types))


@pytest.mark.parametrize("model_type", sorted(WHOLES.keys() - {"internvl_chat"}))
def test_a_nested_model_is_the_same_with_all_its_keys_and_with_those_that_differ(model_type: str) -> None:
    config = made(model_type)
    whole = written(config, WHOLES[model_type].name)
    differing = json.loads(json.dumps(config.to_diff_dict(), default=str))
    differing |= {"architectures": whole["architectures"], "dtype": "bfloat16"}
    assert architecture(differing) == architecture(whole)


@pytest.mark.parametrize("model_type", sorted(WHOLES.keys() - {"internvl_chat"}))
def test_towers_as_their_classes_read_them(model_type: str) -> None:
    config = made(model_type)
    for tower in architecture(written(config, WHOLES[model_type].name)).towers:
        part = config.vision_config if tower.kind == "vision" else config.audio_config
        names = ("depth", "num_hidden_layers", "conf_num_hidden_layers")  # none: gemma3n's eyes are a MobileNet
        assert tower.layers == next((getattr(part, name) for name in names if hasattr(part, name)), 0)
        names = ("num_heads", "num_attention_heads", "conf_num_attention_heads")
        assert tower.heads == next((getattr(part, name) for name in names if hasattr(part, name)), 0)
        assert tower.hidden_size == (getattr(part, "embed_dim", None) or part.hidden_size)
