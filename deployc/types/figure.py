"""A number that is never bare: value, band, unit and the basis it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Basis = Literal["exact", "measured", "transferred", "modelled"]
"""`exact` from tensor shapes; `measured` on this GPU and engine; `transferred` from the nearest calibrated one;
`modelled` from specifications only. In that order of trust."""

_TRUST: tuple[Basis, ...] = ("exact", "measured", "transferred", "modelled")


@dataclass(frozen=True, slots=True)
class Figure:
    """`low <= value <= high`, in SI base units or bytes (`unit`: "B", "s", "1/s", "tokens", "requests")."""

    value: float
    low: float
    high: float
    unit: str
    basis: Basis

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"band [{self.low}, {self.high}] does not hold {self.value} {self.unit}")


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


def exact(value: float, unit: str) -> Figure:
    """A figure that follows from tensor shapes or from the file: no band."""
    return Figure(value, value, value, unit, "exact")


def banded(value: float, unit: str, basis: Basis, below: float, above: float) -> Figure:
    """A figure with a relative band: `below=0.3` puts `low` 30 % under `value`."""
    return Figure(value, value * (1 - below), value * (1 + above), unit, basis)


def through(figure: Figure, count: Callable[[float], float], unit: str) -> Figure:
    """What `count`, which never falls, makes of a figure and of both ends of its band."""
    low, value, high = (count(end) for end in (figure.low, figure.value, figure.high))
    return Figure(value, low, high, unit, figure.basis)


def total(parts: Sequence[Figure], unit: str) -> Figure:
    """The sum of figures of one unit, as sure as its shakiest term."""
    value, low, high = (sum(getattr(part, end) for part in parts) for end in ("value", "low", "high"))
    return Figure(value, low, high, unit, weakest(part.basis for part in parts))


def weakest(bases: Iterable[Basis]) -> Basis:
    """The least trusted of several bases: a sum is as sure as its shakiest term."""
    return max(bases, key=_TRUST.index)


def doubted(record: T, *, but: tuple[str, ...] = ()) -> T:
    """A dataclass of figures, all of them of the least trust, as they rest on an assumption; `but` these names."""
    made: Any = record
    figures = {f.name: getattr(record, f.name) for f in fields(made) if f.name not in but}
    shaky = {name: replace(figure, basis="modelled") for name, figure in figures.items() if isinstance(figure, Figure)}
    result: T = replace(made, **shaky)
    return result
