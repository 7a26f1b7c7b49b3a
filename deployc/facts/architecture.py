"""config.json -> Architecture, for the families whose tensors and attention are known here.

A dimension that is missing is an error, except where the family's own configuration class in transformers documents
what its absence means; those rules stand in `FAMILIES` and in `_attention`. Anything that would change memory or
speed in a way the cost model does not know (sliding window, latent attention, hybrids, several modalities) is an
error that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployc.facts import faults
from deployc.types.architecture import Architecture, AttentionKind, LayerCache

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """One model_type: its class in `architectures`, and what its configuration class says of absent keys.

    `window`: "none" has no sliding window; "key" has one where `sliding_window` is set; "switch" has one only where
    `use_sliding_window` is true (configuration class: default false). `untied`: the class documents
    `tie_word_embeddings=False`; otherwise the key is required. `experts` is the key of the number of experts.
    """

    name: str
    window: str = "none"
    untied: bool = True
    experts: str = ""
    window_default: int | None = None  # where `sliding_window` is absent, not null


FAMILIES: Mapping[str, Family] = {
    "llama": Family("LlamaForCausalLM"),
    "mistral": Family("MistralForCausalLM", window="key", window_default=4096),
    "qwen2": Family("Qwen2ForCausalLM", window="switch"),
    "qwen3": Family("Qwen3ForCausalLM", window="switch"),
    "phi3": Family("Phi3ForCausalLM", window="key"),
    "granite": Family("GraniteForCausalLM"),
    "smollm3": Family("SmolLM3ForCausalLM", window="switch", untied=False),
    "mixtral": Family("MixtralForCausalLM", window="key", experts="num_local_experts"),
    "qwen2_moe": Family("Qwen2MoeForCausalLM", window="switch", experts="num_experts"),
    "qwen3_moe": Family("Qwen3MoeForCausalLM", window="switch", experts="num_experts"),
}

_OTHER_KINDS = {
    "text_config": "several modalities, the language model nested in it",
    "vision_config": "several modalities",
    "audio_config": "several modalities",
    "thinker_config": "several modalities",
    "kv_lora_rank": "latent attention (MLA)",
    "ssm_cfg": "a state space model",
    "mamba_d_state": "a hybrid with Mamba layers",
    "linear_num_value_heads": "a hybrid with linear attention",
    "attn_layer_period": "a hybrid with Mamba layers",
    "is_encoder_decoder": "an encoder-decoder",
}
_DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


def architecture(config: Config, weights_dtype: str | None = None) -> Architecture:
    """The dimensions of a causal language model. Raises Fault DC208, DC209, DC210.

    `weights_dtype` is the safetensors dtype of the embeddings, for a config.json that names no dtype.
    """
    family = _family(config)
    _no_other_kind(config)
    _no_window(config, family)
    heads, kv_heads, head_dim, kind = _attention(config)
    experts, per_token, expert_size = _experts(config, family)
    layers = _positive(config, "num_hidden_layers")
    return Architecture(
        name=family.name,
        model_type=config["model_type"],
        layers=layers,
        hidden_size=_positive(config, "hidden_size"),
        intermediate_size=_positive(config, "intermediate_size"),
        attention=kind,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=_positive(config, "vocab_size"),
        max_position_embeddings=_positive(config, "max_position_embeddings"),
        tie_word_embeddings=_tied(config, family),
        dtype=_dtype(config, weights_dtype),
        caches=(LayerCache("full", tuple(range(layers)), kv_heads, head_dim, head_dim),),
        experts=experts,
        experts_per_token=per_token,
        moe_intermediate_size=expert_size,
        rope=_rope(config),
    )


def _family(config: Config) -> Family:
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise faults.bad_dimension("model_type", "config.json does not say which kind of model it is.")
    for key in ("text_config", "vision_config", "kv_lora_rank"):
        if config.get(key):  # says more than an unknown model_type does
            raise faults.unsupported(key, f"{_OTHER_KINDS[key]} (model_type {model_type}).")
    family = FAMILIES.get(model_type)
    if family is None:
        detail = f"config.json `model_type`: {model_type!r} has tensors and attention that are not known here."
        raise faults.unknown_model_type(detail, f"Known are: {', '.join(FAMILIES)}.")
    names = config.get("architectures")
    if not isinstance(names, list) or not names:
        raise faults.bad_dimension("architectures", "config.json does not name the model's class.")
    if names[0] != family.name:
        detail = f"{names[0]!r} is not {family.name}, the text generator of {model_type}."
        raise faults.unsupported("architectures", detail)
    return family


def _no_other_kind(config: Config) -> None:
    for key, what in _OTHER_KINDS.items():
        if config.get(key):
            raise faults.unsupported(key, f"{what}.")
    layers = config.get("layer_types") or []
    if not isinstance(layers, list):
        raise faults.bad_dimension("layer_types", f"a list is expected, not {layers!r:.60}.")
    if other := sorted({str(kind) for kind in layers} - {"full_attention"}):
        raise faults.unsupported("layer_types", f"layers of kind {', '.join(other)} besides full attention.")


def _no_window(config: Config, family: Family) -> None:
    """A window at least as long as the model's positions never closes, so it is none."""
    if family.window == "none" or (
        family.window == "switch" and not switch(config, "use_sliding_window", default=False)
    ):
        return
    window = config.get("sliding_window", family.window_default)
    if window is None:
        return
    if type(window) is not int or window < _positive(config, "max_position_embeddings"):
        absent = "" if "sliding_window" in config else " (absent; this is its configuration class's default)"
        raise faults.unsupported("sliding_window", f"attention within a window of {window} tokens{absent}.")


def _attention(config: Config) -> tuple[int, int, int, AttentionKind]:
    """Query heads, KV heads, head dimension.

    Absent or null `num_key_value_heads` means one KV head a query head, absent or null `head_dim` means hidden size
    over heads: so the configuration classes of all these families in transformers (`__init__` / `__post_init__`).
    """
    heads = _positive(config, "num_attention_heads")
    hidden = _positive(config, "hidden_size")
    kv_heads = heads if config.get("num_key_value_heads") is None else _positive(config, "num_key_value_heads")
    if heads % kv_heads:
        raise faults.bad_dimension("num_key_value_heads", f"{kv_heads} does not divide the {heads} query heads.")
    if config.get("head_dim") is not None:
        head_dim = _positive(config, "head_dim")
    elif config["model_type"] in ("qwen3", "qwen3_moe"):
        # their class defaults to 128, whatever the hidden size: a config without it is not of that model
        raise faults.bad_dimension("head_dim", "Qwen3 has a head dimension of its own; it must be given.")
    elif hidden % heads:
        raise faults.bad_dimension("head_dim", f"absent, and {heads} heads do not divide the hidden size {hidden}.")
    else:
        head_dim = hidden // heads
    kind: AttentionKind = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
    return heads, kv_heads, head_dim, kind


def _experts(config: Config, family: Family) -> tuple[int, int, int]:
    """Experts, experts a token, intermediate size of one; zeros for a dense model."""
    if not family.experts:
        for key in ("num_local_experts", "num_experts", "n_routed_experts"):
            if config.get(key):
                raise faults.unsupported(key, f"experts in a model of the dense type {config['model_type']}.")
        return 0, 0, 0
    size = "intermediate_size" if family.name == "MixtralForCausalLM" else "moe_intermediate_size"
    experts, per_token = _positive(config, family.experts), _positive(config, "num_experts_per_tok")
    if per_token > experts:
        raise faults.bad_dimension("num_experts_per_tok", f"{per_token} of {experts} experts a token.")
    return experts, per_token, _positive(config, size)


def _tied(config: Config, family: Family) -> bool:
    return switch(config, "tie_word_embeddings", default=False if family.untied else None)


def _dtype(config: Config, weights_dtype: str | None) -> str:
    """`dtype`, in older files `torch_dtype`; else what the weights themselves are in."""
    named = config.get("dtype", config.get("torch_dtype"))
    if named is None:
        named = next((name for name, safetensors in _DTYPES.items() if safetensors == weights_dtype), None)
    name = str(named).removeprefix("torch.")
    if name not in _DTYPES:
        raise faults.bad_dimension("dtype", f"one of {', '.join(_DTYPES)} is expected, not {named!r:.60}.")
    return name


def _rope(config: Config) -> Mapping[str, Any]:
    """`rope_parameters` or, in older files, `rope_scaling`; the kind always as `rope_type`, with `rope_theta`."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise faults.bad_dimension("rope_scaling", f"an object is expected, not {rope!r:.60}.")
    if any(isinstance(value, dict) for value in rope.values()):
        raise faults.unsupported("rope_parameters", "another rotary embedding for each kind of layer.")
    rope = dict(rope)
    if "rope_type" not in rope and "type" in rope:
        rope["rope_type"] = rope.pop("type")
    if "rope_theta" not in rope and config.get("rope_theta") is not None:
        rope["rope_theta"] = config["rope_theta"]
    return rope


def switch(config: Config, key: str, *, default: bool | None) -> bool:
    """A key that is true or false; absent it is `default`, and required where that is None. Raises Fault DC210."""
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise faults.bad_dimension(key, f"true or false is expected, not {value!r:.60}.")
    return value


def _positive(config: Config, key: str) -> int:
    value, most = config.get(key), _MOST.get(key, 2**31)
    if type(value) is not int or not 1 <= value <= most:
        expected = f"a whole number from 1 to {most:,} is expected, not {value!r:.60}."
        raise faults.bad_dimension(key, "it is not there." if key not in config else expected)
    return value


_MOST = {"num_hidden_layers": 1000, "num_experts": 4096, "num_local_experts": 4096}
"""Far above any model: their product is the number of tensors."""
