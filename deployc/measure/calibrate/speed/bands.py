"""Bands from residuals: the factor each way that holds so many of the predictions that did not see their rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from deployc.measure.calibrate.speed.folds import QUANTITIES, Residual

HELD = 0.92
"""Share of the residuals within a band: between the 85 and 97 % that a band of nine in ten may be found to hold."""
LEAST = 1.02
"""No band is narrower than what two runs of the same load differ by."""


def factors(residuals: Sequence[Residual], held: float = HELD) -> dict[str, float]:
    """By quantity. Rows of one configuration count as one row each; few of them make a band too narrow, not too wide."""
    found = {}
    for name in QUANTITIES:
        off = sorted(abs(r.of[name]) for r in residuals if name in r.of)
        if off:
            found[name] = max(LEAST, math.exp(off[min(len(off) - 1, math.ceil(held * len(off)) - 1)]))
    return found


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of one quantity: how many rows lie in bands made without their fold, and how wide those are."""

    share: float
    half_width: float  # median, relative


def coverage(residuals: Sequence[Residual]) -> dict[str, Coverage]:
    """Each fold judged by the bands of the others."""
    inside: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for fold in _folds(residuals):
        bands = factors([r for r in residuals if r.fold != fold])
        for residual in (r for r in residuals if r.fold == fold):
            for name, off in residual.of.items():
                if name in bands:
                    inside.setdefault(name, []).append(abs(off) <= math.log(bands[name]))
                    widths.setdefault(name, []).append((bands[name] - 1 / bands[name]) / 2)
    return {name: Coverage(sum(hits) / len(hits), median(widths[name])) for name, hits in inside.items()}


def _folds(residuals: Iterable[Residual]) -> list[str]:
    return sorted({residual.fold for residual in residuals})
