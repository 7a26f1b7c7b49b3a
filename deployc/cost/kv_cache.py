"""The KV cache of one card: bytes a token, blocks, tokens as the engine logs them, requests that fit.

Page = 2 x kv_heads x head_dim x bytes x block_size a layer (vllm/v1/kv_cache_interface.py, FullAttentionSpec).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.types.choices import Choices
from deployc.types.facts import Facts

GPU_BLOCK, CPU_BLOCK = 16, 128
"""Tokens a block: vLLM's default on GPUs; on the CPU engine (vllm/platforms/cpu.py)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the engine forms its cache on the fullest card, for requests of at most `max_model_len` tokens."""

    block_size: int  # tokens a block
    token_bytes: int  # that one more token of a long request takes, all layers
    max_model_len: int

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all layers."""
        return self.token_bytes * self.block_size

    def blocks(self, available: float) -> int:
        """Whole blocks in the memory that is left; none where it is negative."""
        return max(0, math.floor(available / self.block_bytes))

    def logged_tokens(self, available: float) -> int:
        """Tokens of the line "GPU KV cache size"."""
        return self.blocks(available) * self.block_size

    def usable_tokens(self, available: float) -> int:
        """Tokens that requests can use: one block is the null block (vllm/v1/core/block_pool.py)."""
        return max(0, self.blocks(available) - 1) * self.block_size

    def concurrency(self, available: float) -> float:
        """Requests of `max_model_len` at once, as the engine logs it: blocks over blocks a request."""
        return self.blocks(available) / math.ceil(self.max_model_len / self.block_size)

    def needed(self, length: int) -> int:
        """Bytes for one request of `length` tokens: whole blocks, and the null block beside them."""
        return (math.ceil(length / self.block_size) + 1) * self.block_bytes

    def longest(self, available: float, requests: int = 1) -> int:
        """The largest max_model_len of which `requests` fit, in whole blocks."""
        return self.usable_tokens(available) // requests // self.block_size * self.block_size


def layout(facts: Facts, choices: Choices) -> Layout:
    """The cache of one engine under these choices; KV heads are replicated where TP exceeds them."""
    architecture, dtype = facts.model.architecture, choices.dtype.value
    element = 1 if choices.kv_cache_dtype.value.startswith("fp8") else {"float32": 4}.get(dtype, 2)
    heads = max(1, -(-architecture.kv_heads // choices.tensor_parallel_size.value))
    token_bytes = 2 * architecture.layers * heads * architecture.head_dim * element
    block_size = CPU_BLOCK if facts.smallest.name == "cpu" else GPU_BLOCK
    return Layout(block_size, token_bytes, choices.max_model_len.value)
