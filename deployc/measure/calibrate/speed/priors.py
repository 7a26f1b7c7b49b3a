"""What is known of the speed model's constants without measured rows: profiles/calibration/speed_priors.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployc.data import profiles


@dataclass(frozen=True, slots=True)
class Prior:
    """A value, and its spread as a standard deviation of the logarithm; 0 = it is not fitted."""

    value: float
    spread: float
    source: str


@dataclass(frozen=True, slots=True)
class Tie:
    """Two constants that are alike, as kernels of one family are: `spread` of the logarithm of their ratio."""

    one: str
    other: str
    spread: float


@dataclass(frozen=True, slots=True)
class Priors:
    """Of every constant, by flat name (names.py)."""

    of: Mapping[str, Prior]
    ties: Sequence[Tie]

    @property
    def fitted(self) -> list[str]:
        """Names that a fit may move."""
        return [name for name, prior in self.of.items() if prior.spread > 0]

    def values(self) -> dict[str, float]:
        """All of them, as they are without rows."""
        return {name: prior.value for name, prior in self.of.items()}


def priors() -> Priors:
    """Those that ship with the tool."""
    document = json.loads((profiles() / "calibration" / "speed_priors.json").read_text(encoding="utf-8"))
    return Priors(
        {name: Prior(**row) for name, row in document["constants"].items()}, [Tie(**row) for row in document["ties"]]
    )
