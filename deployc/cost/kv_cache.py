"""The KV cache: bytes a token, blocks, tokens as the engine logs them, requests that fit.

Page = 2 x kv_heads x head_dim x bytes x block_size a layer (vllm/v1/kv_cache_interface.py, FullAttentionSpec).
"""

from __future__ import annotations

import math

from deployc.types.facts import Architecture

GPU_BLOCK, CPU_BLOCK = 16, 128
"""Tokens a block: vLLM's default on GPUs; on the CPU engine (vllm/platforms/cpu.py)."""


def bytes_per_token(architecture: Architecture, kv_cache_dtype: str, dtype: str, tensor_parallel_size: int = 1) -> int:
    """KV bytes of one token on one rank, all layers; KV heads are replicated where TP exceeds them."""
    element = 1 if kv_cache_dtype.startswith("fp8") else {"float32": 4}.get(dtype, 2)
    heads = max(1, -(-architecture.kv_heads // tensor_parallel_size))
    return 2 * architecture.layers * heads * architecture.head_dim * element


def blocks(available: float, token_bytes: int, block_size: int) -> int:
    """Whole blocks in the memory that is left; none where it is negative."""
    return max(0, math.floor(available / (token_bytes * block_size)))


def logged_tokens(available: float, token_bytes: int, block_size: int) -> int:
    """Tokens of the line "GPU KV cache size"."""
    return blocks(available, token_bytes, block_size) * block_size


def usable_tokens(available: float, token_bytes: int, block_size: int) -> int:
    """Tokens that requests can use: one block is the null block (vllm/v1/core/block_pool.py)."""
    return max(0, blocks(available, token_bytes, block_size) - 1) * block_size


def concurrency(available: float, token_bytes: int, block_size: int, max_model_len: int) -> float:
    """Requests of `max_model_len` at once, as the engine logs it: blocks over blocks a request."""
    return blocks(available, token_bytes, block_size) / math.ceil(max_model_len / block_size)


def needed(length: int, token_bytes: int, block_size: int) -> int:
    """Bytes for one request of `length` tokens: whole blocks, and the null block beside them."""
    return (math.ceil(length / block_size) + 1) * block_size * token_bytes


def longest(available: float, token_bytes: int, block_size: int, requests: int = 1) -> int:
    """The largest max_model_len of which `requests` fit, in whole blocks."""
    return usable_tokens(available, token_bytes, block_size) // requests // block_size * block_size
