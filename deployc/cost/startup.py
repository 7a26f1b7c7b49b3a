"""Seconds from the start of the engine to its first answer: import, load, compile, capture."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure


def startup(facts: Facts, choices: Choices, weight_bytes: float) -> Figure:
    """The start of one engine with a cold compile cache; `low` is a warm one with the weights in the page cache."""
    constants = facts.calibration
    if facts.smallest.name == "cpu":
        return constants["cpu_start"].times(1, "s")
    disk = constants["start_disk"]
    parts = [constants["start_import"].times(1, "s")]
    if not choices.enforce_eager.value:
        parts.append(constants["start_compile_layer"].times(facts.model.architecture.layers, "s"))
        parts.append(constants["start_capture"].times(1, "s"))
    value, low, high = (weight_bytes / share for share in (disk.value, disk.high, disk.low))
    return Figure(
        value + sum(p.value for p in parts),
        low + sum(p.low for p in parts),
        high + sum(p.high for p in parts),
        "s",
        "modelled",
    )
