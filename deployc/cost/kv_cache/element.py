"""Bytes of what the cache holds of one token: elements by kv_cache_dtype, scales beside them, latent vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.types.architecture import LayerCache, State
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts

ELEMENT_BYTES: Mapping[str, float] = {
    **SERVED_BYTES, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1, "fp8_ds_mla": 1,
    "fp8_per_token_head": 1, "int8_per_token_head": 1, "nvfp4": 0.5625, "uint8": 1,
}  # fmt: skip
"""By dtype name; nvfp4: half a byte, and a scale of one for 16 (vllm/utils/torch_utils.py, nvfp4_kv_cache_full_dim)."""

TOKEN_HEAD_SCALE = 4
"""Bytes of the float32 scale of a key, and of a value, in one head (vllm/v1/kv_cache_interface.py, 0.20.0)."""


def kv_dtype(facts: Facts, choices: Choices) -> str:
    """The dtype of keys and values: as chosen; "auto" is what the checkpoint declares, else the model's own.

    vllm/utils/torch_utils.py, resolve_kv_cache_dtype_string; a `kv_cache_scheme` of compressed-tensors means fp8
    (vllm/model_executor/layers/attention/attention.py, 0.19.0). One whose size is not known counts as the model's own,
    the largest that there is: rules/unfollowed.py says so, or DC501 where this version takes no such value.
    """
    if choices.kv_cache_dtype.value != "auto":
        written = choices.kv_cache_dtype.value
        return written if written in ELEMENT_BYTES else choices.dtype.value
    declared = _declared(facts.model.quantization) if choices.weights.value == "checkpoint" else None
    return declared or choices.dtype.value


def token_bytes(cache: LayerCache, facts: Facts, choices: Choices) -> int:
    """Bytes of one token in one layer on one card. KV heads are replicated where TP exceeds them, latents always."""
    dtype = cache.dtype or kv_dtype(facts, choices)
    element = ELEMENT_BYTES[dtype]
    if cache.kind == "mla":
        return _latent_bytes(cache, facts, dtype)
    heads = heads_on_rank(cache, choices)
    own_size = cache.kind == "full" or facts.calibration.memory.kv.window_value_size
    values = cache.head_dim_v if own_size and cache.head_dim_v else cache.head_dim
    scales = 2 * TOKEN_HEAD_SCALE if dtype.endswith("per_token_head") else 0
    return int(heads * ((cache.head_dim + values) * element + scales))


def heads_on_rank(cache: LayerCache, choices: Choices) -> int:
    """KV heads of one rank: at least one (vllm/config/model.py, get_num_kv_heads); a latent vector is one head."""
    return max(1, cache.kv_heads // choices.tensor_parallel_size.value)


def state_bytes(cache: LayerCache, choices: Choices) -> int:
    """Bytes of the states of one sequence in one layer on one card."""
    return sum(_one_state(state, choices) for state in cache.states)


def is_sparse(facts: Facts) -> bool:
    """Whether an indexer picks the tokens that latent attention reads (DeepSeek V3.2)."""
    return any(cache.name == "indexer" for cache in facts.model.architecture.caches)


def _latent_bytes(cache: LayerCache, facts: Facts, dtype: str) -> int:
    """Where sparse latent attention runs on FlashMLA, fp8 has a layout of its own; FlashInfer's (10.x) has not."""
    capability = facts.smallest.compute_capability
    if is_sparse(facts) and dtype.startswith("fp8") and (capability is None or capability[0] != 10):
        return facts.calibration.memory.kv.sparse_fp8_bytes
    return int(cache.head_dim * ELEMENT_BYTES[dtype])


def _one_state(state: State, choices: Choices) -> int:
    own = state.dtype or choices.dtype.value
    return int(state.on_rank(choices.tensor_parallel_size.value) * ELEMENT_BYTES[own])


def _declared(quantization: Mapping[str, Any]) -> str | None:
    """What the checkpoint's quantization says of the cache: None where it says nothing."""
    inner = quantization.get("quantization")
    method = str(quantization.get("quant_method", ""))
    for part in (inner if isinstance(inner, Mapping) else {}, quantization):
        scheme, name = part.get("kv_cache_scheme"), part.get("kv_cache_quant_algo")
        if method == "compressed-tensors" and scheme is not None:
            return "fp8"
        if method.startswith("modelopt") and (named := _modelopt(scheme, name)):
            return named
    return None


def _modelopt(scheme: Any, name: Any) -> str | None:
    if isinstance(scheme, Mapping):
        return {8: "fp8", 4: "nvfp4"}.get(scheme.get("num_bits", 0)) if scheme.get("type") == "float" else None
    return {"fp8": "fp8", "nvfp4": "nvfp4"}.get(str(scheme or name).lower())
