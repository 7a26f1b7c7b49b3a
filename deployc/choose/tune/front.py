"""The front: configurations than which no other has both more tokens/s for its cost and a shorter time per token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

STEP = 0.05
"""Share by which two throughputs or times differ and still count as equal: no model of speed is surer than that."""
T = TypeVar("T")


class Spent(Exception):
    """No more configurations may be simulated."""


@dataclass(frozen=True, slots=True)
class Point:
    """Tokens/s for each card, or for each unit of money an hour, and seconds a token (95th percentile), in steps.

    `rank` decides between equals: what is taken from weights and cache, flags, and a number of its own at the end.
    """

    tokens: float
    tpot: float
    rank: tuple[float, ...]

    def beats(self, other: Point) -> bool:
        """Whether the other is not on the front because of this one."""
        if (self.tokens, self.tpot) == (other.tokens, other.tpot):
            return self.rank < other.rank
        return self.tokens >= other.tokens and self.tpot <= other.tpot


def point(tokens: float, tpot: float, rank: tuple[float, ...]) -> Point:
    """The point of these figures."""
    return Point(steps(tokens), steps(tpot), rank)


def steps(value: float) -> float:
    """How many steps of `STEP` lie between 1 and the value."""
    if not 0 < value < math.inf:
        return math.inf if value > 0 else -math.inf
    return math.floor(math.log(value) / math.log1p(STEP))


def explored(pool: Iterable[tuple[Point, T]], look: Callable[[T], Point | None]) -> tuple[list[Point], list[Point]]:
    """The points of the front, and those that may lie on it and could not be looked at any more.

    `pool`: candidates, each with a point that its own is no better than. `look` gives its own; None where it is not to
    be on the front. It raises Spent where no more may be looked at.
    """
    found: list[Point] = []
    waiting = sorted(pool, key=lambda entry: (entry[0].tpot - entry[0].tokens, entry[0].rank))
    for index, (hoped, candidate) in enumerate(waiting):
        if any(seen.beats(hoped) for seen in found):
            continue
        try:
            own = look(candidate)
        except Spent:
            return front(found), [hope for hope, _ in waiting[index:] if not any(seen.beats(hope) for seen in found)]
        if own is not None:
            found.append(own)
    return front(found), []


def front(points: Sequence[Point]) -> list[Point]:
    """Those that no other beats, most tokens first."""
    kept: list[Point] = []
    for one in sorted(points, key=lambda one: (-one.tokens, one.tpot, one.rank)):
        if not kept or one.tpot < kept[-1].tpot:
            kept.append(one)
    return kept
