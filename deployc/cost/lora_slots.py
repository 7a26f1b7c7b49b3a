"""Slots of unmerged adapters: A [slots, r, in] and B [slots, out, r] for every linear (vllm/lora/layers/)."""

from __future__ import annotations

from collections.abc import Sequence

from deployc.cost.weights import linears
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts
from deployc.types.figure import Figure, exact

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""vllm/config/lora.py: MaxLoRARanks."""


def lora_rank(rank: int, ladder: Sequence[int] = LORA_RANKS) -> int | None:
    """The smallest max_lora_rank of the engine that holds a rank; None above its ladder."""
    return next((step for step in ladder if step >= rank), None)


def lora_slots(facts: Facts, choices: Choices) -> Figure:
    """Bytes of all slots on one rank; none where no adapter is served unmerged."""
    if choices.adapter_mode.value != "serve" or choices.max_loras is None or choices.max_lora_rank is None:
        return exact(0, "B")
    each = choices.max_lora_rank.value * choices.max_loras.value
    elements = sum((one.outputs + one.inputs) * each * one.copies for one in linears(facts, choices))
    return exact(elements * SERVED_BYTES[choices.dtype.value], "B")
