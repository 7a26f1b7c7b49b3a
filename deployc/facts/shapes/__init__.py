"""Tensor shapes from the architecture alone, for a source with config.json but no weights.

The names and shapes are those of the families' modules in transformers (`modeling_<model_type>.py`, as saved by
save_pretrained); summed they give the published parameter counts, which the tests hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deployc.facts import faults
from deployc.facts.architecture import switch
from deployc.types.architecture import Architecture
from deployc.types.facts import TensorGroup
from deployc.types.groups import compress

_DTYPE = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_QUERY_KEY_NORMS = ("qwen3", "qwen3_moe")

Part = tuple[str, tuple[int, ...]]
"""Name within its module, shape."""


def shapes(config: Mapping[str, Any], arch: Architecture) -> tuple[TensorGroup, ...]:
    """Every tensor of an unquantized checkpoint of this architecture, in its own dtype."""
    if config.get("quantization_config") or config.get("compression_config"):
        detail = "a quantized checkpoint whose weights are not there: its scales cannot be derived."
        raise faults.unsupported("quantization_config", detail)
    return compress((name, _DTYPE[arch.dtype], shape) for name, shape in _tensors(config, arch))


def _tensors(config: Mapping[str, Any], arch: Architecture) -> Iterator[Part]:
    vocabulary = (arch.vocab_size, arch.hidden_size)
    yield "model.embed_tokens.weight", vocabulary
    yield "model.norm.weight", (arch.hidden_size,)
    if not arch.tie_word_embeddings:
        yield "lm_head.weight", vocabulary
    shared = [*_attention(config, arch), *_norms(arch)]
    dense, sparse = list(_mlp(config, arch)), list(_experts(config, arch))
    dense_layers = _dense_layers(config, arch)
    for layer in range(arch.layers):
        for name, shape in [*shared, *(dense if layer in dense_layers else sparse)]:
            yield f"model.layers.{layer}.{name}", shape


def _attention(config: Mapping[str, Any], arch: Architecture) -> Iterator[Part]:
    hidden, q, kv = arch.hidden_size, arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    if arch.model_type == "phi3":
        yield "self_attn.qkv_proj.weight", (q + 2 * kv, hidden)
        yield "self_attn.o_proj.weight", (hidden, q)
        return
    for name, rows, columns in (("q", q, hidden), ("k", kv, hidden), ("v", kv, hidden), ("o", hidden, q)):
        yield f"self_attn.{name}_proj.weight", (rows, columns)
        if name in _biased(config, arch):
            yield f"self_attn.{name}_proj.bias", (rows,)
    if arch.model_type in _QUERY_KEY_NORMS:
        yield "self_attn.q_norm.weight", (arch.head_dim,)
        yield "self_attn.k_norm.weight", (arch.head_dim,)


def _biased(config: Mapping[str, Any], arch: Architecture) -> Sequence[str]:
    """Which attention projections have a bias: Qwen2's q, k, v always; elsewhere as `attention_bias` says.

    Mistral and Mixtral have no such key and no bias; the other configuration classes document the default false.
    """
    if arch.model_type == "qwen2":
        return "qkv"
    if arch.model_type == "qwen2_moe":
        return "qkv" if switch(config, "qkv_bias", default=True) else ""
    if arch.model_type in ("mistral", "mixtral"):
        return ""
    return "qkvo" if switch(config, "attention_bias", default=False) else ""


def _norms(arch: Architecture) -> Iterator[Part]:
    yield "input_layernorm.weight", (arch.hidden_size,)
    yield "post_attention_layernorm.weight", (arch.hidden_size,)


def _mlp(config: Mapping[str, Any], arch: Architecture) -> Iterator[Part]:
    hidden, inner = arch.hidden_size, arch.intermediate_size
    if arch.model_type == "phi3":
        yield "mlp.gate_up_proj.weight", (2 * inner, hidden)
        yield "mlp.down_proj.weight", (hidden, inner)
        return
    for name, rows, columns in (("gate", inner, hidden), ("up", inner, hidden), ("down", hidden, inner)):
        yield f"mlp.{name}_proj.weight", (rows, columns)
        if arch.model_type in ("llama", "granite", "smollm3") and switch(config, "mlp_bias", default=False):
            yield f"mlp.{name}_proj.bias", (rows,)


def _experts(config: Mapping[str, Any], arch: Architecture) -> Iterator[Part]:
    if not arch.experts:
        return
    hidden, inner = arch.hidden_size, arch.moe_intermediate_size
    mixtral = arch.model_type == "mixtral"
    module, names = ("block_sparse_moe", ("w1", "w3", "w2")) if mixtral else ("mlp", _PROJECTIONS)
    yield f"{module}.gate.weight", (arch.experts, hidden)
    for expert in range(arch.experts):
        for name, shape in zip(names, ((inner, hidden), (inner, hidden), (hidden, inner)), strict=True):
            yield f"{module}.experts.{expert}.{name}.weight", shape
    if arch.model_type == "qwen2_moe":
        inner = config.get("shared_expert_intermediate_size", 0)
        if type(inner) is not int or inner < 1:
            raise faults.bad_dimension("shared_expert_intermediate_size", f"a size is expected, not {inner!r}.")
        for name, shape in zip(names, ((inner, hidden), (inner, hidden), (hidden, inner)), strict=True):
            yield f"mlp.shared_expert.{name}.weight", shape
        yield "mlp.shared_expert_gate.weight", (1, hidden)


_PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


def _dense_layers(config: Mapping[str, Any], arch: Architecture) -> frozenset[int]:
    """Layers with one MLP: all of a dense model; for Qwen's MoE those that `mlp_only_layers` and the step leave out.

    Documented defaults of Qwen2MoeConfig and Qwen3MoeConfig: `decoder_sparse_step` 1, `mlp_only_layers` none.
    """
    if not arch.experts:
        return frozenset(range(arch.layers))
    if arch.model_type == "mixtral":
        return frozenset()
    step, only = config.get("decoder_sparse_step", 1), config.get("mlp_only_layers") or []
    if not isinstance(only, list):
        raise faults.bad_dimension("mlp_only_layers", f"a list is expected, not {only!r:.60}.")
    if type(step) is not int or step < 1:
        raise faults.bad_dimension("decoder_sparse_step", f"a positive whole number is expected, not {step!r}.")
    return frozenset(layer for layer in range(arch.layers) if layer in only or (layer + 1) % step)
