"""What layers keep, by hand: the caches of real models in their public dimensions, and facts that hold them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from configured import H200, choices_of, facts_of

from deployc.cost.kv_cache import Layout, layout
from deployc.types.architecture import Architecture, LayerCache, State
from deployc.types.choices import Choice
from deployc.types.facts import Facts, GpuFacts

GIB = 2**30

Caches = tuple[LayerCache, ...]


def full(layers: range | list[int], kv_heads: int, head_dim: int, head_dim_v: int = 0) -> LayerCache:
    """K and V of every token."""
    return LayerCache("full", tuple(layers), kv_heads, head_dim, head_dim_v or head_dim)


def windowed(layers: range | list[int], kv_heads: int, head_dim: int, window: int, kind: Any = "sliding") -> LayerCache:
    """K and V of a window, or of a chunk."""
    return LayerCache(kind, tuple(layers), kv_heads, head_dim, head_dim, window)


def latent(layers: range, elements: int, name: str = "", dtype: str = "") -> LayerCache:
    """One vector a token."""
    return LayerCache("mla", tuple(layers), 1, elements, 0, name=name, dtype=dtype)


def every(layers: int, nth: int) -> tuple[list[int], list[int]]:
    """Numbers of each `nth` layer, and of the others."""
    chosen = [n for n in range(layers) if n % nth == nth - 1]
    return chosen, [n for n in range(layers) if n not in chosen]


def alternating(layers: int, nth: int, kv_heads: int, head_dim: int, window: int) -> Caches:
    """Each `nth` layer full, the others in a window."""
    chosen, others = every(layers, nth)
    return full(chosen, kv_heads, head_dim), windowed(others, kv_heads, head_dim, window)


def gdn(layers: list[int]) -> LayerCache:
    """Qwen3.5-27B: 16 key and 48 value heads of 128, convolution of 4; float32 states."""
    convolution = State((2 * 16 * 128 + 48 * 128) * 3)
    return LayerCache("state", tuple(layers), states=(convolution, State(48 * 128 * 128, "float32")), name="gdn")


CACHES: dict[str, Caches] = {
    "qwen2.5-0.5b": (full(range(24), 2, 64),),
    "qwen2.5-7b": (full(range(28), 4, 128),),
    "qwen2.5-32b": (full(range(64), 8, 128),),
    "qwen3-8b": (full(range(36), 8, 128),),
    "qwen3-30b-a3b": (full(range(48), 4, 128),),
    "llama-2-7b": (full(range(32), 32, 128),),
    "llama-3-8b": (full(range(32), 8, 128),),
    "granite-3-2b": (full(range(40), 8, 64),),
    "phi-4": (full(range(40), 10, 128),),
    "mistral-small-24b": (full(range(40), 8, 128),),
    "deepseek-v2-lite": (latent(range(27), 512 + 64),),
    "deepseek-v3.2": (latent(range(61), 512 + 64), latent(range(61), 128 + 4, "indexer", "uint8")),
    "gemma-2-2b": alternating(26, 2, 4, 256, 4096),
    "gemma-2-9b": alternating(42, 2, 8, 256, 4096),
    "gemma-3-12b": alternating(48, 6, 8, 256, 1024),
    "gemma-4-31b": (full(every(60, 6)[0], 4, 512), windowed(every(60, 6)[1], 16, 256, 1024)),
    "gpt-oss-20b": alternating(24, 2, 8, 64, 128),
    "qwen3.5-27b": (full(every(64, 4)[0], 4, 256), gdn(every(64, 4)[1])),
}


@cache
def facts_at(version: str) -> Facts:
    """Facts of a plain model on one H200."""
    return facts_of(cards=(H200,), version=version)


def architecture_of(caches: Caches, name: str = "LlamaForCausalLM") -> Architecture:
    """An architecture that keeps these; its other dimensions have no say in the cache."""
    layers = max((n for cache in caches for n in cache.layers), default=-1) + 1
    plain = facts_at("0.32.0").model.architecture
    return replace(plain, name=name, layers=layers, caches=caches)


def laid_out(
    caches: str | Caches, version: str = "0.32.0", *, card: GpuFacts = H200, name: str = "LlamaForCausalLM",
    config: dict[str, Any] | None = None, pp: int = 1, **choices: Any,
) -> Layout:  # fmt: skip
    """The layout of a model in the table, or of these caches, under `choices`."""
    facts = replace(facts_at(version), devices=(card,))
    architecture = architecture_of(CACHES[caches] if isinstance(caches, str) else caches, name)
    model = replace(facts.model, architecture=architecture, config=dict(facts.model.config) | (config or {}))
    made = replace(choices_of(**choices), pipeline_parallel_size=Choice(pp, "search"))
    return layout(replace(facts, model=model), made)
