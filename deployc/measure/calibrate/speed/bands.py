"""Bands from residuals: the factor each way that holds so many of the predictions that did not see their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deployc.measure.calibrate.speed.folds import Residual
from deployc.measure.calibrate.speed.row import QUANTITIES, unit_of
from deployc.measure.calibrate.speed.score import Predicted
from deployc.types.figure import Basis, Figure

HELD = 0.9
"""Share of the residuals within a band."""
LEAST = 1.02
"""No band is narrower than what two runs of the same load differ by."""


def factors(residuals: Sequence[Residual], held: float = HELD) -> dict[str, float]:
    """By quantity: a factor each way."""
    found = {}
    for name in QUANTITIES:
        off = sorted(abs(r.of[name]) for r in residuals if name in r.of)
        if off:
            found[name] = max(LEAST, math.exp(off[max(0, math.ceil(held * len(off)) - 1)]))
    return found


def banded(residuals: Sequence[Residual], basis: Basis) -> list[Predicted]:
    """Every prediction in the band that the residuals of the other folds give: none judges itself."""
    made: list[Predicted] = []
    for fold in sorted({residual.fold for residual in residuals}):
        width = factors([residual for residual in residuals if residual.fold != fold])
        for residual in (r for r in residuals if r.fold == fold):
            figures = {name: _figure(residual, name, width[name], basis) for name in residual.of if name in width}
            made.append((residual.sample, figures))
    return made


def _figure(residual: Residual, name: str, factor: float, basis: Basis) -> Figure:
    value = residual.sample.measured[name] * math.exp(residual.of[name])
    return Figure(value, value / factor, value * factor, unit_of(name), basis)
