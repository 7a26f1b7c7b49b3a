"""Bytes of weights on the fullest card, from tensor shapes: how vLLM splits, pads, replicates and quantizes them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from deployc.cost.parallel import VOCABULARY_PADDING
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import DTYPE_BYTES, Facts, TensorGroup
from deployc.types.groups import expand

COLUMN = ("q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3")
ROW = ("o_proj", "down_proj", "w2")
SCALE_BYTES = 4
"""A per-row scale is held in float32 (vLLM's compressed-tensors W8A8 scheme)."""
FLOATS = ("F64", "F32", "F16", "BF16")
SERVED_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


def weight_bytes(facts: Facts, choices: Choices) -> int:
    """Bytes of weights on the fullest rank.

    What is packed already keeps its own bytes, a scale for each row apart, which the engine holds in float32.
    """
    return _bytes(facts.model.tensors, facts.model.architecture, choices)


def streamed_bytes(facts: Facts, choices: Choices) -> int:
    """Bytes of weights read in one decode step: all but an untied input embedding, of which only rows are read."""
    architecture = facts.model.architecture
    read = [t for t in facts.model.tensors if architecture.tie_word_embeddings or not is_embedding(t)]
    return _bytes(read, architecture, choices)


def _bytes(tensors: Iterable[TensorGroup], architecture: Architecture, choices: Choices) -> int:
    total = 0
    for tensor in tensors:
        if not _is_loaded(tensor, architecture):
            continue
        shape = shard(tensor, architecture, choices.tensor_parallel_size.value)
        int8 = _quantized_count(tensor, choices.ignore) if choices.weights.value == "int8" else 0
        elements = math.prod(shape)
        total += int8 * (elements + SCALE_BYTES * (shape[0] if int8 else 0))
        total += math.ceil((tensor.count - int8) * elements * _element_bytes(tensor, choices.dtype.value))
    return total


def _is_loaded(tensor: TensorGroup, architecture: Architecture) -> bool:
    """Whether the engine keeps it: a tied lm_head is the embedding, rotary frequencies are computed anew."""
    module = _module(tensor)
    return module != "rotary_emb" and not (module == "lm_head" and architecture.tie_word_embeddings)


def _element_bytes(tensor: TensorGroup, dtype: str) -> float:
    if tensor.pattern.endswith("_scale"):
        return SCALE_BYTES
    return SERVED_BYTES[dtype] if tensor.dtype in FLOATS else DTYPE_BYTES[tensor.dtype]


def _quantized_count(tensor: TensorGroup, ignore: tuple[str, ...]) -> int:
    """How many of a group become int8; `ignore` may name single layers of it."""
    if any(character.isdigit() for name in ignore for character in name):
        return sum(is_quantized(replace(tensor, pattern=name, count=1), ignore) for name in expand(tensor))
    return tensor.count if is_quantized(tensor, ignore) else 0


def shard(tensor: TensorGroup, architecture: Architecture, tensor_parallel_size: int) -> tuple[int, ...]:
    """The shape of one tensor on one rank."""
    module, kind = _module(tensor), tensor.pattern.rsplit(".", 1)[-1]
    shape = list(tensor.shape)
    if not shape:
        return (1,)
    if is_embedding(tensor) or module == "lm_head":
        shape[0] = -(-_ceil_to(shape[0], VOCABULARY_PADDING) // tensor_parallel_size)
    elif module in ("k_proj", "v_proj"):
        heads = max(1, -(-architecture.kv_heads // tensor_parallel_size))  # replicated where TP > KV heads
        shape[0] = math.ceil(shape[0] * heads / architecture.kv_heads)
    elif module in COLUMN:
        shape[0] = -(-shape[0] // tensor_parallel_size)
    elif module in ROW and kind != "bias" and len(shape) > 1:
        shape[1] = -(-shape[1] // tensor_parallel_size)
    return tuple(shape)


def is_embedding(tensor: TensorGroup) -> bool:
    """Whether this is the input embedding."""
    return _module(tensor) in ("embed_tokens", "wte", "word_embeddings")


def is_quantized(tensor: TensorGroup, ignore: tuple[str, ...]) -> bool:
    """Whether our quantizer turns it into int8: the matrices of linear layers, `ignore` and routers left alone.

    An entry of `ignore` is one or several parts of the name: "down_proj", "layers.0", "layers.1.mlp.up_proj".
    """
    module = _module(tensor)
    linear = module in COLUMN or module in ROW
    return linear and len(tensor.shape) == 2 and not any(is_named(tensor.pattern, entry) for entry in ignore)


def is_named(tensor: str, entry: str) -> bool:
    """Whether an entry of `ignore` names this tensor or a module around it, by whole parts between dots."""
    return bool(entry) and f".{entry}." in f".{tensor}."


def _module(tensor: TensorGroup) -> str:
    parts = tensor.pattern.split(".")
    return parts[-2] if len(parts) > 1 else parts[0]


def _ceil_to(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
