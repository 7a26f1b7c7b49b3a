"""Bytes of weights on the fullest card, from tensor shapes: how vLLM splits, pads, replicates and quantizes them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deployc.types.facts import Architecture, TensorGroup

COLUMN = ("q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3")
ROW = ("o_proj", "down_proj", "w2")
VOCABULARY_PADDING = 64
"""vllm/model_executor/layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE."""
SCALE_BYTES = 4
"""A per-row scale is held in float32 (vLLM's compressed-tensors W8A8 scheme)."""
FLOATS = ("F64", "F32", "F16", "BF16")
SERVED_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


def weight_bytes(
    tensors: Iterable[TensorGroup],
    architecture: Architecture,
    tensor_parallel_size: int = 1,
    dtype: str = "bfloat16",
    weights: str = "none",
    ignore: tuple[str, ...] = ("lm_head",),
) -> int:
    """Bytes on one rank. `weights` "int8": linears one byte an element and a scale a row; others as `dtype`."""
    served = SERVED_BYTES[dtype]
    total = 0
    for tensor in tensors:
        shape = shard(tensor, architecture, tensor_parallel_size)
        elements = math.prod(shape) * tensor.count
        if weights == "int8" and is_quantized(tensor, ignore):
            total += elements + SCALE_BYTES * shape[0] * tensor.count
        elif tensor.dtype in FLOATS:
            total += elements * served
        else:  # already packed by another method: its own bytes
            total += math.ceil(tensor.bytes / max(1, math.prod(tensor.shape) * tensor.count) * elements)
    return total


def streamed_bytes(
    tensors: Iterable[TensorGroup],
    architecture: Architecture,
    tensor_parallel_size: int,
    dtype: str,
    weights: str,
    ignore: tuple[str, ...],
) -> int:
    """Bytes of weights read in one decode step: all but an untied input embedding, of which only rows are read."""
    read = [t for t in tensors if architecture.tie_word_embeddings or not is_embedding(t)]
    return weight_bytes(read, architecture, tensor_parallel_size, dtype, weights, ignore)


def shard(tensor: TensorGroup, architecture: Architecture, tensor_parallel_size: int) -> tuple[int, ...]:
    """The shape of one tensor on one rank."""
    module, kind = _module(tensor), tensor.pattern.rsplit(".", 1)[-1]
    shape = list(tensor.shape)
    if not shape:
        return (1,)
    if is_embedding(tensor) or module == "lm_head":
        shape[0] = _ceil_to(shape[0], VOCABULARY_PADDING * tensor_parallel_size) // tensor_parallel_size
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
    """Whether our quantizer turns it into int8: the matrices of linear layers, `ignore` and routers left alone."""
    module = _module(tensor)
    linear = module in COLUMN or module in ROW
    return linear and len(tensor.shape) == 2 and not any(name and name in tensor.pattern for name in ignore)


def _module(tensor: TensorGroup) -> str:
    parts = tensor.pattern.split(".")
    return parts[-2] if len(parts) > 1 else parts[0]


def _ceil_to(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
