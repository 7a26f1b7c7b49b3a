"""From sums over lines to figures with bands: plain arithmetic, the same on every machine.

A band is where the figure of a much longer text of this kind lies in 19 of 20 cases: from the spread between lines, as
the tokens of one line are alike, and between tokens where there are fewer lines than LINES.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from deployc.types.figure import Figure

Unit = tuple[int, float, float, float, int]
"""Of a line or a token: tokens, sums of the reference's -ln p, of the artifact's, of KL, and tokens that agree."""
LINES = 8
"""With fewer lines their spread says too little: then tokens are the units."""
Z = 1.959964
"""97.5 % of a normal distribution lie below."""


def likeness(units: Sequence[Unit]) -> dict[str, Figure]:
    """The figures of `Quality` over scored tokens, of at least two units."""
    tokens = [unit[0] for unit in units]
    reference, artifact, kl = ([unit[i] for unit in units] for i in (1, 2, 3))
    more = [b - a for a, b in zip(reference, artifact, strict=True)]
    share = [float(unit[4]) for unit in units]
    value, low, high = mean(share, tokens)
    least, most = wilson(sum(share), sum(tokens))
    return {
        "perplexity_reference": _figure(mean(reference, tokens), math.exp),
        "perplexity_artifact": _figure(mean(artifact, tokens), math.exp),
        "perplexity_increase": _figure(mean(more, tokens), math.expm1),
        "mean_kl": _figure(mean(kl, tokens), lambda nats: max(nats, 0.0)),
        "top1_agreement": Figure(value, max(0.0, min(low, least)), min(1.0, max(high, most)), "", "measured"),
    }


def share(good: int, asked: int) -> Figure:
    """A share of answers, with Wilson's interval: never without a band, even where all are good."""
    low, high = wilson(good, asked)
    return Figure(good / asked, low, high, "", "measured")


def mean(sums: Sequence[float], tokens: Sequence[int]) -> tuple[float, float, float]:
    """The mean over tokens and its band: a ratio of sums, its standard error by linearization over the units."""
    total, count = sum(tokens), len(tokens)
    value = math.fsum(sums) / total
    squares = math.fsum((x - value * n) ** 2 for x, n in zip(sums, tokens, strict=True))
    error = math.sqrt(squares * count / (count - 1)) / total
    reach = student(count - 1) * error
    return value, value - reach, value + reach


def student(freedom: int) -> float:
    """97.5 % of Student's t, by the first two terms of Abramowitz and Stegun 26.7.5; 7 degrees and more: within 1 %."""
    z, n = Z, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / n + second / n**2


def wilson(good: float, asked: int) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    p, n = good / asked, asked
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return min(p, max(0.0, middle - reach)), max(p, min(1.0, middle + reach))


def _figure(ends: tuple[float, float, float], of: Callable[[float], float]) -> Figure:
    value, low, high = (of(end) for end in ends)
    return Figure(value, low, high, "", "measured")
