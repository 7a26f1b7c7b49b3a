"""The KV cache as the scheduler sees it: what a request of so many tokens holds, and what there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.cost.kv_cache import Layout


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of one card. A request holds `base` and `token` bytes for each of its tokens."""

    bytes: float
    base: float
    token: float

    def held(self, tokens: float) -> float:
        """By a request of so many tokens."""
        return self.base + self.token * tokens


ENDLESS = Room(math.inf, 0.0, 1.0)
"""Where memory is no limit."""


def room(layout: Layout, available: float, tokens: int) -> Room:
    """A straight line through what requests of half and of all of `tokens` hold: blocks are taken whole."""
    free = (layout.blocks(available) - 1) * layout.block_bytes
    half = max(1, tokens // 2)
    small, large = layout.request_bytes(half), layout.request_bytes(max(tokens, half + 1))
    each = max(0.0, (large - small) / (max(tokens, half + 1) - half))
    rounding = layout.token_bytes * (layout.block_size - 1) / 2 if layout.uniform else 0.0
    base = rounding if layout.uniform else max(0.0, small - each * half)
    return Room(max(0.0, float(free)), base, float(layout.token_bytes) if layout.uniform else each)
