"""The requests of a simulated run: lengths, arrivals or how many are in flight. The same for the same seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

P95 = 1.6448536269514722
"""Standard normal deviations below which 95 % lie."""


@dataclass(frozen=True, slots=True)
class Load:
    """Lengths in tokens, arrivals in seconds from the start. Exactly one of `arrivals` and `concurrency` is given.

    Closed (`concurrency`): so many are sent at once at the start, and the next as one is answered.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    arrivals: Sequence[float] = ()
    concurrency: int = 0
    shared_prefix: int = 0  # tokens at the start that all prompts have in common

    @property
    def requests(self) -> int:
        """How many in all."""
        return len(self.inputs)


def closed(inputs: Sequence[int], outputs: Sequence[int], concurrency: int, shared_prefix: int = 0) -> Load:
    """`concurrency` requests in flight at all times."""
    return Load(inputs, outputs, concurrency=max(1, concurrency), shared_prefix=shared_prefix)


def poisson(inputs: Sequence[int], outputs: Sequence[int], rate: float, shared_prefix: int = 0, seed: int = 0) -> Load:
    """Independent arrivals at `rate` a second."""
    chance, now, arrivals = random.Random(seed), 0.0, []
    for _ in inputs:
        now += chance.expovariate(rate)
        arrivals.append(now)
    return Load(inputs, outputs, tuple(arrivals), shared_prefix=shared_prefix)


def lengths(count: int, mean: float, p95: float, seed: int) -> list[int]:
    """So many lengths: all alike, or lognormal with this mean and 95th percentile, in a shuffled order.

    Each is the mean of an equal share of the distribution, so that few requests have the spread of many, and their mean
    is `mean`. A p95 beyond what a lognormal of that mean can have (about 3.9 times it) gets the widest one.
    """
    if p95 <= mean:
        return [max(1, round(mean))] * count
    from statistics import NormalDist  # takes milliseconds to import, and most loads have no spread

    sigma, normal = _sigma(p95 / mean), NormalDist()
    # of the mean, what lies below a quantile: the normal's share below it less sigma
    below = [0.0, *(normal.cdf(normal.inv_cdf(i / count) - sigma) for i in range(1, count)), 1.0]
    drawn = [max(1, round(mean * count * (high - low))) for low, high in pairwise(below)]
    random.Random(seed).shuffle(drawn)
    return drawn


def _sigma(ratio: float) -> float:
    """The smaller sigma whose lognormal has this p95 over mean: exp(P95 x sigma - sigma^2 / 2) = ratio."""
    rest = P95 * P95 - 2 * math.log(ratio)
    return P95 - math.sqrt(rest) if rest > 0 else P95
