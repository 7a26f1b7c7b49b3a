"""How far the stored weights are from the 16-bit ones, layer by layer. Runs in the build interpreter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from deployc.build.quality.stored import Stored
from deployc.build.quantize.layers import FUSED
from deployc.build.weights.tensors import CHUNK, ranges
from deployc.types.quality import Layer

NAMED = 3
"""Layers that are worth naming."""


def worst(reference: Path, artifact: Path) -> list[dict[str, Any]]:
    """The layers with the largest |stored - 16-bit| / |16-bit|, as `Layer`s, those that an engine fuses as one.

    Empty where the artifact's norms are not the reference's: calibration moved scales between layers, and single
    weights cannot be compared.
    """
    with Stored(reference) as before, Stored(artifact) as after:
        if any(_moved(before, after)):
            return []
        found = []
        for modules in fused(after.quantized):
            sums = [_squares(before.tensor(f"{m}.weight"), after.tensor(f"{m}.weight")) for m in modules
                    if f"{m}.weight" in before]  # fmt: skip
            size = sum(square for _, square in sums)
            if size > 0:
                found.append(Layer(tuple(modules), math.sqrt(sum(error for error, _ in sums) / size)))
    return [asdict(layer) for layer in sorted(found, key=lambda layer: (-layer.error, layer.modules))[:NAMED]]


def fused(modules: Iterable[str]) -> list[list[str]]:
    """Modules by what an engine runs as one matrix: q, k and v; gate and up."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for module in sorted(modules):
        parent, _, name = module.rpartition(".")
        together = next((names for names in FUSED if name in names), (name,))
        groups.setdefault((parent, together), []).append(module)
    return list(groups.values())


def _moved(before: Stored, after: Stored) -> Iterator[bool]:
    for name in after.names():
        if name in before and name.removesuffix(".weight") not in after.quantized and len(after.shape(name)) == 1:
            new = after.tensor(name)
            yield not torch.equal(before.tensor(name).to(new.dtype), new)


def _squares(reference: torch.Tensor, stored: torch.Tensor) -> tuple[float, float]:
    """Sums of (stored - reference)^2 and reference^2."""
    error = size = 0.0
    for first, last in ranges(tuple(reference.shape), CHUNK):
        was = reference[first:last].float()
        error += float((stored[first:last].float() - was).square_().sum())
        size += float(was.square_().sum())
    return error, size
