"""The KV cache of one card as the engine lays it out: what each layer keeps, groups of layers, blocks, what fits."""

from __future__ import annotations

from deployc.cost.kv_cache.block_size import CPU_BLOCK, GPU_BLOCK
from deployc.cost.kv_cache.layout import Layout, layout
from deployc.cost.kv_cache.prefix_caching import keeps_prefixes

__all__ = ["CPU_BLOCK", "GPU_BLOCK", "Layout", "keeps_prefixes", "layout"]
