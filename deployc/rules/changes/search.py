"""Which changes meet what the file asks for: pruned by arithmetic, the promising ones simulated, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployc.cost.estimate import estimate
from deployc.cost.prediction import setting, speed
from deployc.rules.case import Case
from deployc.rules.changes.free import free
from deployc.rules.changes.option import PRICES, Option, Price
from deployc.rules.changes.paid import cards, formats, other_cards
from deployc.types.prediction import Speed

RUNS = 6
"""Simulations of one plan for this: one judges all limits."""
OF_ONE_PRICE = 2
"""Simulations of changes that cost alike: those that promise most."""
BY_MONEY: tuple[Price, ...] = ("cards", "card")
"""Prices within which the first change costs least: fewer cards, a kind that is less fast."""
DOUBT = 1.1
"""How far above a limit an estimate may be that is still worth a simulation."""

Limits = Mapping[str, tuple[float, bool]]
"""By the names of the SLA: the number, and whether it bounds from above."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A change and what the stated load sees under it."""

    option: Option
    speed: Speed


@dataclass(frozen=True, slots=True)
class Hope:
    """A change by arithmetic: how many times each limit is missed under it; not above 1 where it is met."""

    option: Option
    misses: Mapping[str, float]

    @property
    def worst(self) -> float:
        """Of all limits."""
        return max(self.misses.values())


def search(case: Case, limits: Limits, missed: Collection[str]) -> list[Tried]:
    """The promising changes, simulated under the stated load."""
    return [Tried(option, speed(option.setting)) for option in promising(case, limits, missed)]


def promising(case: Case, limits: Limits, missed: Collection[str]) -> list[Option]:
    """At most RUNS changes that may meet a limit which is missed, from the cheapest; else the one that comes nearest.

    Of each price two: of those that may meet all limits, if there are any. Nothing is simulated.
    """
    here = off_by(case, limits)
    picked: list[Hope] = []
    others: list[Hope] = []
    for price, alike in options(case):
        hopes: list[Hope] = []
        for option in alike:
            hope = _hope(option, limits, here)
            helps = any(hope.misses[name] <= DOUBT for name in missed)
            (hopes if helps else others).append(hope)
            if price in BY_MONEY and sum(hope.worst <= DOUBT for hope in hopes) >= OF_ONE_PRICE:
                break
        picked += _best(hopes, price)
    if not picked:
        picked = sorted(others, key=lambda hope: max(hope.misses[name] for name in missed))[:1]
    return [hope.option for hope in picked[:RUNS]]


def options(case: Case) -> Iterator[tuple[Price, Iterator[Option]]]:
    """All changes with which the engine starts, by what they cost."""
    for price, made in zip(PRICES, (free, formats, cards, other_cards), strict=True):
        yield price, (option for option in made(case) if option.starts)


def _best(hopes: Sequence[Hope], price: Price) -> list[Hope]:
    alike = [hope for hope in hopes if hope.worst <= DOUBT] or list(hopes)
    if price in BY_MONEY:
        return alike[:OF_ONE_PRICE]
    best = sorted(alike, key=lambda hope: hope.worst)[:OF_ONE_PRICE]
    return [hope for hope in alike if hope in best]


def _hope(option: Option, limits: Limits, off: Mapping[str, float]) -> Hope:
    at = estimate(option.setting)
    return Hope(option, {name: _missed(at[name] * off[name], *limit) for name, limit in limits.items()})


def off_by(case: Case, names: Collection[str]) -> dict[str, float]:
    """How many times what was simulated of the configuration at hand is what arithmetic says of it."""
    here = estimate(setting(case.deploy, case.facts, case.choices))
    seen = {name: getattr(case.prediction.speed, name).value for name in names}
    known = {name for name in names if math.isfinite(seen[name]) and math.isfinite(here[name])}
    return {name: seen[name] / here[name] if name in known else 1.0 for name in names}


def _missed(value: float, limit: float, upper: bool) -> float:
    return value / limit if upper else limit / value
