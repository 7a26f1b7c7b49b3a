"""The engine's first check, before it loads anything: is the memory free that it is told to take."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deployc import units
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types.facts import GpuFacts


def start_check(case: Case) -> Iterator[Diagnostic]:
    """vllm/v1/worker/utils.py, request_memory: free memory must be at least ceil(total x utilization).

    The engine's own context is on the card by then, so a utilization of 1 never starts. One diagnostic a kind of card.
    """
    if case.on_cpu:
        return
    for device in dict.fromkeys(_kind(case, device) for device in case.facts.devices):
        yield from _check(case, *device)


def _kind(case: Case, device: GpuFacts) -> tuple[str, float, int]:
    return device.name, device.memory.value, max(case.deploy.hardware.reserved_memory, device.used)


def _check(case: Case, name: str, total: float, held: int) -> Iterator[Diagnostic]:
    share, own = case.choices.gpu_memory_utilization.value, case.facts.calibration["context_before_check"]
    wanted = math.ceil(total * share)
    least, most = total - held - own.high, total - held - own.low
    if least >= wanted:
        return
    others = f"others hold {units.show_bytes(held)} and " if held else ""
    said = error if most < wanted else warning
    yield said(
        "DC303",
        "too little memory is free at the start",
        f"{name}: of {units.show_bytes(total)} {others}the engine's own context takes {units.show_bytes(own.low)} to "
        f"{units.show_bytes(own.high)} before its check; {units.show_bytes(max(0, least))} to "
        f"{units.show_bytes(max(0, most))} are free then. It asks for {units.show_bytes(wanted)}, {share:.0%} of the "
        "card, not of what is free.",
        ("free the card, or " if held else "")
        + f"set engine.gpu_memory_utilization to at most {max(0, math.floor(least / total * 100) / 100):.2f}",
        case.at("gpu-memory-utilization", "engine.gpu_memory_utilization"),
        own.basis,
    )
