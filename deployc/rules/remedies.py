"""What would help where memory is short, each with the figure that it gives, computed by the cost model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from deployc import units
from deployc.cost.capability import FP8_KV_SINCE, INT8_BEFORE, INT8_SINCE
from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.parallel import undivided
from deployc.rules.case import Case
from deployc.types.choices import Choice, Choices

MOST = 3


def remedies(case: Case) -> list[str]:
    """Up to three changes under which the engine starts with a request of full length; then the card it would take."""
    return [*changes(case), _larger(case)]


def changes(case: Case) -> list[str]:
    """Up to three changes of the file that leave more room for KV, each with what it gives."""
    found = []
    for words, choices in _candidates(case):
        bill, cache = memory(case.facts, choices)
        if bill.kv_cache.value > 0 and cache.concurrency.value >= 1 and bill.weights.value < bill.budget.value:
            tokens = units.show_count(cache.tokens.value)
            card = " a card" if choices.tensor_parallel_size.value > 1 else ""
            found.append(f"{words} ({units.show_bytes(bill.kv_cache.value)}{card} for {tokens} KV tokens)")
    return found[:MOST]


def _candidates(case: Case) -> Iterator[tuple[str, Choices]]:
    choices, facts = case.choices, case.facts
    capability = facts.smallest.compute_capability
    if not case.on_cpu and choices.gpu_memory_utilization.value < (share := _least_share(case)) < 0.98:
        words = f"raise engine.gpu_memory_utilization to at least {share:.2f}"
        yield words, replace(choices, gpu_memory_utilization=Choice(share, "search"))
    if choices.weights.value == "none" and (capability is None or INT8_SINCE <= capability < INT8_BEFORE):
        yield "set quantization.weights: int8", replace(choices, weights=Choice("int8", "search"))
    if case.on_cpu:
        return
    if choices.kv_cache_dtype.value == "auto" and (capability is None or capability >= FP8_KV_SINCE):
        yield "set quantization.kv_cache: fp8", replace(choices, kv_cache_dtype=Choice("fp8", "search"))
    tp = choices.tensor_parallel_size.value
    for more in (tp * 2, tp * 4):
        if not undivided(facts.model.architecture, more):
            yield (
                f"spread it over {more} such cards: engine.parallel.tensor: {more}",
                replace(choices, tensor_parallel_size=Choice(more, "search"), replicas=Choice(1, "search")),
            )


def _least_share(case: Case) -> float:
    """The smallest share of the card, in whole per cent, that surely holds one request of full length."""
    return math.ceil(_taken(case) / case.prediction.memory.total.value * 100) / 100


def _taken(case: Case) -> float:
    """Bytes of all that the budget must hold beside one request of full length, and that request."""
    bill, length = case.prediction.memory, case.choices.max_model_len.value
    page = layout(case.facts, case.choices).needed(length)
    if case.on_cpu:
        return bill.weights.value + bill.activations.high + bill.non_torch.high + max(page, bill.kv_cache.value)
    return bill.budget.value - bill.kv_cache.low + page


def _larger(case: Case) -> str:
    if case.on_cpu:
        return f"raise hardware.host_memory to {units.show_bytes(_taken(case))}, if the host has it"
    share = max(case.choices.gpu_memory_utilization.value, case.facts.engine.gpu_memory_utilization)
    return f"use a card with at least {units.show_bytes(_taken(case) / share)}"
