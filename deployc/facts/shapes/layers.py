"""On which layers a block occurs: all, those with experts, those that keep a cache of some kind or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.layers import FULL, every_kinds
from deployc.facts.shapes.part import Sizes

Layers = Callable[[Sizes], Sequence[int]]


def every(sizes: Sizes) -> Sequence[int]:
    return range(sizes.arch.layers)


def kept(*kinds: str) -> Layers:
    """Layers that keep something of one of these kinds (`LayerCache.kind`) themselves."""

    def layers(sizes: Sizes) -> Sequence[int]:
        found = {layer for cache in sizes.arch.caches if cache.kind in kinds for layer in cache.layers}
        return sorted(found)

    return layers


STATE = kept("state")
ATTENTION = kept("full", "sliding", "chunked", "mla")


def sparse(sizes: Sizes) -> Sequence[int]:
    """Those with experts."""
    return sizes.arch.moe_layers


def other_than(*groups: Layers) -> Layers:
    """All but these."""

    def layers(sizes: Sizes) -> Sequence[int]:
        without = {layer for group in groups for layer in group(sizes)}
        return [layer for layer in range(sizes.arch.layers) if layer not in without]

    return layers


def both(one: Layers, other: Layers) -> Layers:
    """Those that are in either group."""

    def layers(sizes: Sizes) -> Sequence[int]:
        second = set(other(sizes))
        return [layer for layer in one(sizes) if layer in second]

    return layers


READING = other_than(ATTENTION)
"""Gemma 3n and 4: layers that read the keys and values of an earlier one."""


def gemma4_full(sizes: Sizes) -> Sequence[int]:
    """Gemma 4: the layers of full attention, whether they keep a cache or read another's; the last one always is."""
    kinds = every_kinds(Keys(sizes.config), sizes.arch.layers, 6)
    return [layer for layer, kind in enumerate([*kinds[:-1], FULL]) if kind == FULL]


def wide(sizes: Sizes) -> Sequence[int]:
    """Gemma 4: with `use_double_wide_mlp` the layers that keep nothing have networks of twice the size."""
    return READING(sizes) if sizes.flag("use_double_wide_mlp", default=False) else ()
