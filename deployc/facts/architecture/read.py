"""config.json -> Architecture, strung together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from deployc.facts import faults
from deployc.facts.architecture.classes import defaults
from deployc.facts.architecture.experts import NONE
from deployc.facts.architecture.families import FAMILIES, Family
from deployc.facts.architecture.heads import Heads
from deployc.facts.architecture.keys import ALSO, Keys
from deployc.facts.architecture.layers import gathered
from deployc.facts.architecture.modalities import WHOLES, Whole
from deployc.types.architecture import Architecture, AttentionKind, LayerCache
from deployc.types.config import Config
from deployc.types.facts import SAFETENSORS_NAMES

CHANGES: Mapping[str, str] = {
    "text_config": "several modalities, the language model nested in it",
    "vision_config": "several modalities",
    "audio_config": "several modalities",
    "thinker_config": "several modalities",
    "is_encoder_decoder": "an encoder-decoder",
    "kv_lora_rank": "latent attention (MLA)",
    "index_topk": "sparse attention with an index of its own",
    "attention_chunk_size": "attention within chunks",
    "attn_window_size": "attention within a window",
    "sliding_windows": "attention within windows of several sizes",
    "dual_chunk_attention_config": "attention in two kinds of chunks",
    "num_kv_shared_layers": "layers that share K and V",
    "use_cla": "layers that share K and V",
    "global_head_dim": "heads of another size in some layers",
    "num_global_key_value_heads": "other KV heads in some layers",
    "per_layer_config": "layers of several sizes",
    "block_configs": "layers of several sizes",
    "ssm_cfg": "a state space model",
    "mamba_d_state": "a hybrid with Mamba layers",
    "ssm_state_size": "a hybrid with Mamba layers",
    "linear_num_value_heads": "a hybrid with linear attention",
    "attn_layer_period": "a hybrid with Mamba layers",
}
"""Keys that change what layers keep, or where the language model is; a family reads them or they are refused."""

_EXPERTS = ("num_experts", *ALSO["num_experts"])


def architecture(
    config: Config,
    weights_dtype: str | None = None,
    assumed: Mapping[str, str] | None = None,
    preprocessor: Config | None = None,
) -> Architecture:
    """The dimensions of a causal language model, alone or with towers. Raises Fault DC208, DC209, DC210.

    `weights_dtype` is the safetensors dtype of the embeddings, for a config.json that names no dtype. `assumed` maps
    each key of config.json that was put there by `--assume` to what it says, in words. `preprocessor` is
    preprocessor_config.json, which says how large an image may be.
    """
    assumed = assumed or {}
    _quantization_is_an_object(config)
    whole = _whole(config, assumed)
    values, path, text = whole.language(config) if whole else (config, "", str(config["model_type"]))
    family = _family(text, path)
    keys = Keys(values, path, family.names, defaults(family.like or text))
    _nothing_else(keys, family, flat=whole is not None and not path)
    if not whole:
        _named(config, family.name, text, assumed)
    layers = keys.whole("num_hidden_layers", family.depth(keys))
    heads = family.heads(keys)
    caches = gathered(family.caches(keys, heads, layers))
    experts = family.moe.read(keys, layers) if family.moe else NONE
    return Architecture(
        name=_class(config, whole.name if whole else family.name),
        model_type=str(config["model_type"]),
        layers=layers,
        hidden_size=keys.size("hidden_size"),
        intermediate_size=family.width(keys),
        attention=_attention(heads, caches),
        heads=heads.query,
        kv_heads=heads.kv,
        head_dim=heads.dim,
        vocab_size=keys.size("vocab_size"),
        max_position_embeddings=_positions(keys),
        tie_word_embeddings=_tied(config, keys, whole is not None),
        dtype=_dtype(config, values, weights_dtype),
        caches=caches,
        experts=experts.count,
        experts_per_token=experts.per_token,
        moe_intermediate_size=experts.size,
        shared_expert_size=experts.shared,
        moe_layers=experts.layers,
        towers=whole.towers(config, preprocessor or {}) if whole else (),
        assumed=tuple(assumed.values()),
        rope=_rope(keys),
        text=text if whole else "",
    )


def _whole(config: Config, assumed: Collection[str]) -> Whole | None:
    """The row of a model with several modalities; None for a language model. Raises Fault DC209, DC210."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise faults.bad_dimension("model_type", "config.json does not say which kind of model it is.")
    whole = WHOLES.get(model_type)
    if whole is not None:
        _named(config, whole.name, model_type, assumed)
    return whole


def _family(model_type: str, path: str) -> Family:
    family = FAMILIES.get(model_type)
    if family is None:
        raise faults.unknown_model_type(f"{path}model_type", model_type, [*FAMILIES, *WHOLES])
    return family


def _named(config: Config, name: str, model_type: str, assumed: Collection[str]) -> None:
    """`architectures` names the text generator, unless the model_type is an assumption. Raises Fault DC209, DC210."""
    if "model_type" in assumed:
        return
    names = config.get("architectures")
    if not isinstance(names, list) or not names:
        raise faults.bad_dimension("architectures", "config.json does not name the model's class.")
    if names[0] != name:
        detail = f"{names[0]!r:.60} is not {name}, the text generator of {model_type}."
        raise faults.unsupported("architectures", detail)


def _class(config: Config, name: str) -> str:
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else name


def _nothing_else(keys: Keys, family: Family, *, flat: bool) -> None:
    """Nothing stands there that would change the cache and that this family does not read. Raises Fault DC209."""
    for key, what in CHANGES.items():
        towered = flat and key in ("vision_config", "audio_config", "text_config")
        if keys.values.get(key) and key not in family.knows and not towered:
            raise faults.unsupported(keys.path + key, f"{what}.")
    if family.moe is None:
        for key in _EXPERTS:
            if keys.values.get(key):
                raise faults.unsupported(keys.path + key, f"experts in a model of the dense class {family.name}.")


def _quantization_is_an_object(config: Config) -> None:
    for key in ("quantization_config", "compression_config"):
        if config.get(key) is not None and not isinstance(config[key], Mapping):
            raise faults.unsupported(key, f"an object is expected, not {config[key]!r:.60}.")


def _attention(heads: Heads, caches: tuple[LayerCache, ...]) -> AttentionKind:
    kinds = {cache.kind for cache in caches}
    if kinds == {"mla"}:
        return "mla"
    if len(caches) > 1 or "state" in kinds:
        return "hybrid"
    return "mha" if heads.kv == heads.query else "mqa" if heads.kv == 1 else "gqa"


def _positions(keys: Keys) -> int:
    """`model_max_length` rules where a file has it (Cohere; vLLM's derive_max_model_len_and_key)."""
    if keys.given("model_max_length"):
        return keys.size("model_max_length")
    return keys.size("max_position_embeddings")


def _tied(config: Config, keys: Keys, nested: bool) -> bool:
    """The language model's own key, else the whole's, else the default of either's class. Raises Fault DC210."""
    key = "tie_word_embeddings"
    if nested and key not in keys.values and (key in config or key not in keys.defaults):
        return Keys(config, defaults=defaults(str(config["model_type"]))).switch(key)
    return keys.switch(key)


def _dtype(config: Config, text: Config, weights_dtype: str | None) -> str:
    """`dtype`, in older files `torch_dtype`, of the whole or of the language model; else what the weights are in."""
    named = next(
        (part[key] for part in (config, text) for key in ("dtype", "torch_dtype") if part.get(key) is not None), None
    )
    if named is None:
        named = next((name for name, safetensors in SAFETENSORS_NAMES.items() if safetensors == weights_dtype), None)
    name = str(named).removeprefix("torch.")
    if name not in SAFETENSORS_NAMES:
        raise faults.bad_dimension("dtype", f"one of {', '.join(SAFETENSORS_NAMES)} is expected, not {named!r:.60}.")
    return name


_LARGEST_FACTOR = 65536
"""Of rotary scaling: from 4,096 positions to 268 million."""


def _rope(keys: Keys) -> Mapping[str, Any]:
    """`rope_parameters` or, in older files, `rope_scaling`; the kind always as `rope_type`, with `rope_theta`.

    Where each kind of layer has its own, that of the layers which look at everything.
    """
    rope = keys.get("rope_parameters") or keys.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise faults.bad_dimension(keys.shown("rope_scaling"), f"an object is expected, not {rope!r:.60}.")
    if isinstance(rope.get("full_attention"), dict):
        rope = rope["full_attention"]
    if any(isinstance(value, dict) for value in rope.values()):
        raise faults.unsupported(keys.shown("rope_parameters"), "another rotary embedding for each kind of layer.")
    rope = dict(rope)
    if "rope_type" not in rope and "type" in rope:
        rope["rope_type"] = rope.pop("type")
    if rope.get("original_max_position_embeddings") is not None:
        keys.whole("rope_scaling.original_max_position_embeddings", rope["original_max_position_embeddings"])
    factor = rope.get("factor")
    if factor is not None and not (type(factor) in (int, float) and 0 < factor <= _LARGEST_FACTOR):
        what = f"a number above 0, at most {_LARGEST_FACTOR:,}, is expected, not {factor!r:.60}."
        raise faults.bad_dimension(keys.shown("rope_scaling.factor"), what)
    if "rope_theta" not in rope and keys.get("rope_theta") is not None:
        rope["rope_theta"] = keys.get("rope_theta")
    return rope
