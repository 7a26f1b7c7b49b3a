"""Latent attention (MLA): one vector a token, whatever the heads; and the indexer beside it that DeepSeek V3.2 has.

vllm/v1/kv_cache_interface.py (MLAAttentionSpec), vllm/model_executor/models/deepseek_v2.py (DeepseekV32IndexerCache,
`_skip_topk`); 0.33.0.
"""

from __future__ import annotations

from deployc.facts import faults
from deployc.facts.architecture.heads import Heads
from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.layers import Kept
from deployc.types.architecture import LayerCache

_INDEX_BLOCK, _SCALE_BYTES = 128, 4
"""Elements that share one scale in the indexer's cache, and the bytes of that scale."""


def latent(keys: Keys, _heads: Heads, layers: int) -> Kept:
    """kv_lora_rank + qk_rope_head_dim elements a token and layer."""
    return ((layer, _cache(keys)) for layer in range(layers))


def indexed(keys: Keys, _heads: Heads, layers: int) -> Kept:
    """With the indexer's keys in 8 bits and their scales: index_head_dim + 4 bytes for each 128 of them.

    `index_topk_freq` and `index_topk_pattern` leave the indexer out of some layers, which read another one's choice.
    """
    size = keys.size("index_head_dim")
    indexer = LayerCache("mla", (), 1, size + size // _INDEX_BLOCK * _SCALE_BYTES, 0, name="indexer", dtype="uint8")
    pattern = keys.get("index_topk_pattern")
    if pattern is not None and not isinstance(pattern, str):
        raise faults.bad_dimension(keys.shown("index_topk_pattern"), f"letters are expected, not {pattern!r:.60}.")
    every, offset = keys.option("index_topk_freq", 1) or 1, keys.option("index_skip_topk_offset", 2)
    for layer in range(layers):
        yield layer, _cache(keys)
        skipped = max(layer - offset + 1, 0) % every != 0 if pattern is None else pattern[layer : layer + 1] == "S"
        if not skipped:
            yield layer, indexer


def _cache(keys: Keys) -> LayerCache:
    return LayerCache("mla", (), 1, keys.size("kv_lora_rank") + keys.size("qk_rope_head_dim"), 0)
