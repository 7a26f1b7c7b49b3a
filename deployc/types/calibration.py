"""The measured and recalled constants of the cost model: tool data, each with band, basis and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployc.types.figure import Basis, Figure


@dataclass(frozen=True, slots=True)
class Factor:
    """One constant with the range in which it was seen."""

    value: float
    low: float
    high: float
    unit: str
    basis: Basis
    source: str

    def times(self, amount: float, unit: str) -> Figure:
        """A figure proportional to this constant."""
        return Figure(self.value * amount, self.low * amount, self.high * amount, unit, self.basis)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors by name; asking for one that the profile lacks is a fault of ours, never a default."""

    factors: Mapping[str, Factor]

    def __getitem__(self, name: str) -> Factor:
        return self.factors[name]
