"""Groups of layers that share one block table: vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups (0.16 to 0.33)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deployc.cost.kv_cache.spec import CacheSpec
from deployc.types.engine_kv import EngineKv

Layers = Sequence[tuple[int, CacheSpec]]
"""Each layer's number and spec; a layer that keeps two things stands there twice."""


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers for which one block number means the same tokens."""

    spec: CacheSpec  # of any of them: they hold equally many blocks of a request
    pages: tuple[tuple[int, int], ...]  # number of each layer, bytes of its page

    def bytes(self, stage: range) -> int:
        """Of one block, over the group's layers in a pipeline stage."""
        return sum(size for layer, size in self.pages if layer in stage)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups, and why the engine would refuse such layers ("" = it does not)."""

    groups: tuple[CacheGroup, ...]
    refusal: str = ""


def grouped(layers: Layers, kv: EngineKv) -> Grouping:
    """All layers of the model in groups of one size, or in a single group where they hold the same blocks."""
    layers = _promoted(layers)
    if not layers:
        return Grouping(())
    first = layers[0][1]
    if all(first.like(spec) for _, spec in layers):
        return Grouping((_group(first, layers),))
    unified, refusal = _one_page_size(layers, kv)
    return Grouping(tuple(_split(unified, kv)), refusal)


def _promoted(layers: Layers) -> Layers:
    """Chunked layers beside full ones keep all tokens: with a chunk size the hybrid manager is off by default.

    vllm/config/vllm.py (VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE), unify_hybrid_kv_cache_specs.
    """
    kinds = {spec.kind for _, spec in layers}
    if not ({"full", "chunked"} <= kinds):
        return layers
    return [(n, replace(s, kind="full", window=0) if s.kind == "chunked" else s) for n, s in layers]


def _one_page_size(layers: Layers, kv: EngineKv) -> tuple[Layers, str]:
    """Smaller pages grow to the largest by more tokens a block; states, and what does not divide, by padding.

    unify_kv_cache_spec_page_size.
    """
    largest = max(spec.bytes for _, spec in layers)
    refusal = ""

    def grown(spec: CacheSpec) -> CacheSpec:
        nonlocal refusal
        if spec.kind == "state" or spec.bytes == largest:
            return replace(spec, bytes=largest)
        if largest % spec.bytes == 0:
            return replace(spec, tokens=spec.tokens * (largest // spec.bytes), bytes=largest)
        if not kv.odd_pages_padded or spec.kind == "mla":
            refusal = f"pages of {spec.bytes:,} and {largest:,} bytes, of which one does not divide the other"
        return replace(spec, bytes=largest)

    changed = {spec: grown(spec) for spec in {spec for _, spec in layers}}
    return [(number, changed[spec]) for number, spec in layers], refusal


def _split(layers: Layers, kv: EngineKv) -> Iterable[CacheGroup]:
    """The rarest type sets the layers a group, the most frequent one where they hardly differ in number."""
    by_spec: dict[CacheSpec, list[tuple[int, CacheSpec]]] = {}
    for layer in layers:
        by_spec.setdefault(layer[1], []).append(layer)
    counts = [len(alike) for alike in by_spec.values()]
    size = max(counts) if max(counts) < min(counts) * kv.one_group_below else min(counts)
    for spec, alike in by_spec.items():
        parts = -(-len(alike) // size)
        for part in range(parts):  # every so-manieth: pipeline stages then hold equally many layers of each group
            yield _group(spec, alike[part::parts])


def _group(spec: CacheSpec, layers: Layers) -> CacheGroup:
    return CacheGroup(spec, tuple((number, one.bytes) for number, one in layers))
