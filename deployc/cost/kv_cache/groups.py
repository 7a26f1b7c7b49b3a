"""Groups of layers that share one block table: vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups (0.16 to 0.33)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deployc.cost.kv_cache.spec import CacheSpec
from deployc.types.engine_kv import EngineKv

Kinds = tuple[tuple[CacheSpec, tuple[int, ...]], ...]
"""Specs with the numbers of their layers; a layer that keeps two things stands there twice."""


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers for which one block number means the same tokens."""

    kinds: Kinds  # whose layers hold equally many blocks of a request

    @property
    def spec(self) -> CacheSpec:
        """Of any of the layers."""
        return self.kinds[0][0]

    @property
    def layers(self) -> list[int]:
        """Their numbers; one that keeps two things is there twice."""
        return sorted(number for _, layers in self.kinds for number in layers)

    def bytes(self, stage: range) -> int:
        """Of one block, over the group's layers in a pipeline stage."""
        return sum(spec.bytes * sum(number in stage for number in layers) for spec, layers in self.kinds)

    @property
    def all_bytes(self) -> int:
        """Of one block, over all the group's layers."""
        return sum(spec.bytes * len(layers) for spec, layers in self.kinds)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups, and why the engine would refuse such layers ("" = it does not)."""

    groups: tuple[CacheGroup, ...]
    refusal: str = ""


def grouped(kinds: Kinds, kv: EngineKv) -> Grouping:
    """All layers of the model in groups of one size, or in a single group where they hold the same blocks."""
    kinds = _merged(_promoted(kinds))
    if not kinds:
        return Grouping(())
    if all(kinds[0][0].like(spec) for spec, _ in kinds):
        return Grouping((CacheGroup(kinds),))
    unified, refusal = _one_page_size(kinds, kv)
    return Grouping(tuple(_split(_merged(unified), kv)), refusal)


def _merged(kinds: Kinds) -> Kinds:
    """Equal specs once."""
    found: dict[CacheSpec, list[int]] = {}
    for spec, layers in kinds:
        found.setdefault(spec, []).extend(layers)
    return tuple((spec, tuple(sorted(layers))) for spec, layers in found.items())


def _promoted(kinds: Kinds) -> Kinds:
    """Chunked layers beside full ones keep all tokens: with a chunk size the hybrid manager is off by default.

    vllm/config/vllm.py (VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE), unify_hybrid_kv_cache_specs.
    """
    if not ({"full", "chunked"} <= {spec.kind for spec, _ in kinds}):
        return kinds
    return tuple((replace(s, kind="full", window=0) if s.kind == "chunked" else s, layers) for s, layers in kinds)


def _one_page_size(kinds: Kinds, kv: EngineKv) -> tuple[Kinds, str]:
    """Smaller pages grow to the largest by more tokens a block; states, and what does not divide, by padding.

    unify_kv_cache_spec_page_size.
    """
    largest, refusal, grown = max(spec.bytes for spec, _ in kinds), "", []
    for spec, layers in kinds:
        tokens = spec.tokens
        if spec.kind != "state" and largest % spec.bytes == 0:
            tokens *= largest // spec.bytes
        elif spec.kind == "mla" or (spec.kind != "state" and not kv.odd_pages_padded):
            refusal = f"pages of {spec.bytes:,} and {largest:,} bytes, of which one does not divide the other"
        grown.append((replace(spec, tokens=tokens, bytes=largest), layers))
    return tuple(grown), refusal


def _split(kinds: Kinds, kv: EngineKv) -> Iterable[CacheGroup]:
    """The rarest type sets the layers a group, the most frequent one where they hardly differ in number."""
    counts = [len(layers) for _, layers in kinds]
    size = max(counts) if max(counts) < min(counts) * kv.one_group_below else min(counts)
    for spec, layers in kinds:
        parts = -(-len(layers) // size)
        for part in range(parts):  # every so-manieth: pipeline stages then hold equally many layers of each group
            yield CacheGroup(((spec, layers[part::parts]),))
