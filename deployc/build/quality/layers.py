"""How far the stored weights are from the 16-bit ones, layer by layer. Runs in the build interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from deployc.build.quality.stored import Stored
from deployc.build.weights.tensors import CHUNK, ranges


def squares(reference: Path, artifact: Path) -> dict[str, tuple[float, float]]:
    """Quantized module -> sums of (stored - 16-bit)^2 and of 16-bit^2 over its weights.

    Empty where the artifact's norms are not the reference's: calibration moved scales between layers, and single
    weights cannot be compared.
    """
    with Stored(reference) as before, Stored(artifact) as after:
        if any(_moved(before, after)):
            return {}
        names = (f"{module}.weight" for module in sorted(after.quantized))
        return {
            name.removesuffix(".weight"): _squares(before.tensor(name), after.tensor(name))
            for name in names
            if name in before
        }


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
