"""What output costs, in the money that the file states a price in."""

from __future__ import annotations

import math

from deployc.types.figure import Figure

HOUR = 3600.0
MILLION = 1e6


def per_million_tokens(hourly: float, tokens_per_second: Figure) -> Figure:
    """A million output tokens, where all cards cost `hourly`, whether they work or not. Infinite where none come."""
    each = hourly / HOUR * MILLION
    value, low, high = (
        each / rate if rate > 0 else math.inf
        for rate in (tokens_per_second.value, tokens_per_second.high, tokens_per_second.low)
    )
    return Figure(value, low, high, "money", tokens_per_second.basis)
