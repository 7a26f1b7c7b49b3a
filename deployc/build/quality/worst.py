"""The layers that quantization changed most, so that a message can name what to leave at 16 bit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from deployc.types.quality import Layer
from deployc.types.scheme import FUSED

NAMED = 3
"""Layers that are worth naming."""


def worst(squares: Mapping[str, Sequence[float]]) -> tuple[Layer, ...]:
    """Those with the largest |stored - 16-bit| / |16-bit|; module -> the sums of both squares goes in."""
    found = []
    for modules in fused(squares):
        error, size = (math.fsum(squares[module][i] for module in modules) for i in (0, 1))
        if size > 0:
            found.append(Layer(tuple(modules), math.sqrt(error / size)))
    return tuple(sorted(found, key=lambda layer: (-layer.error, layer.modules))[:NAMED])


def fused(modules: Iterable[str]) -> list[list[str]]:
    """Modules by what an engine runs as one matrix: q, k and v; gate and up."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for module in sorted(modules):
        parent, _, name = module.rpartition(".")
        together = next((names for names in FUSED if name in names), (name,))
        groups.setdefault((parent, together), []).append(module)
    return list(groups.values())
