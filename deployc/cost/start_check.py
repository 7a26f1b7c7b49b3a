"""The engine's check before it loads: free memory must be at least ceil(total x gpu_memory_utilization).

vllm/v1/worker/utils.py, request_memory. The share is one of the whole card, so what others hold lowers it.
"""

from __future__ import annotations

import math

from deployc.cost.non_torch import before_check
from deployc.spec.deploy import Deploy
from deployc.types.facts import Facts, GpuFacts


def held_by_others(deploy: Deploy, card: GpuFacts) -> int:
    """Bytes of a card that are not to be had: reserved by the file, or seen in use, whichever is more."""
    return max(deploy.hardware.reserved_memory, card.used)


def highest_utilization(deploy: Deploy, facts: Facts, card: GpuFacts, ranks: int) -> float:
    """The largest share, in whole per cent, with which the check passes for certain; negative where none does."""
    return largest_share(card.memory.value, held_by_others(deploy, card) + before_check(facts, ranks).high)


def largest_share(total: float, taken: float) -> float:
    """What of `total` bytes is left beside `taken` ones, as a share in whole per cent."""
    return math.floor((total - taken) / total * 100) / 100
