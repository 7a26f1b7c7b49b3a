"""Weights in host memory: they make room on the card and are read from there at every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc import units
from deployc.cost.memory import memory, offloaded
from deployc.cost.other_cards import starts
from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case
from deployc.types.choices import Choice


def weights_in_host_memory(case: Case) -> Iterator[Diagnostic]:
    """vllm/model_executor/offloader/uva.py, 0.33.0: the GPU reads what is offloaded from host memory at every step."""
    moved = offloaded(case.facts, case.choices)
    if case.on_cpu or not moved:
        return
    card = case.facts.smallest
    own = card.interconnect_bandwidth if card.interconnect == "pcie" else None
    links = [c.interconnect_bandwidth.value for c in case.facts.known_cards if c.interconnect == "pcie" and
             c.interconnect_bandwidth]  # fmt: skip
    link, over = (own.value, "") if own else (max(links, default=0.0), " over the fastest PCIe link of a known card")
    more = f", {units.show_seconds(moved / link)} more at the least{over}" if link else ""
    cost = f"{units.show_bytes(moved)} of each card's weights are read from host memory at every step{more}"
    at, here = case.at("cpu-offload-gb", "engine.args"), replace(case.choices, cpu_offload_bytes=Choice(0, "search"))
    if starts(case.facts, here):
        left = units.show_bytes(memory(case.facts, here)[0].kv_cache.value)
        yield warning(
            "DC309",
            "weights are offloaded that fit into the card",
            f"All of them fit, with {left} left for the KV cache. {cost}.",
            "remove it",
            at,
            case.prediction.memory.kv_cache.basis,
        )
    else:
        yield warning(
            "DC311",
            "the speeds do not count the weights in host memory",
            f"{cost}; the memory figures count them, the speeds here are those of weights on the card.",
            "measure before you rely on them, or take fewer bytes a weight, more cards or a larger one",
            at,
        )
