"""What would help where memory is short, each with the figure that it gives, computed by the cost model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc import units
from deployc.cost.capability import INT8_BEFORE, INT8_SINCE
from deployc.cost.memory import memory
from deployc.rules.case import Case
from deployc.types.choices import Choice, Choices

MOST = 3


def remedies(case: Case) -> list[str]:
    """Up to three changes under which the engine starts with a request of full length, in words."""
    found = []
    for words, choices in _candidates(case):
        bill, cache = memory(case.deploy, case.facts, choices)
        if bill.kv_cache.value > 0 and cache.concurrency.value >= 1 and bill.weights.value < bill.budget.value:
            tokens = units.show_count(cache.tokens.value)
            found.append(f"{words} ({units.show_bytes(bill.kv_cache.value)} for {tokens} KV tokens)")
    return found[:MOST]


def _candidates(case: Case) -> Iterator[tuple[str, Choices]]:
    choices, facts = case.choices, case.facts
    capability = facts.smallest.compute_capability
    if choices.weights.value == "none" and (capability is None or INT8_SINCE <= capability < INT8_BEFORE):
        yield "set quantization.weights: int8", replace(choices, weights=Choice("int8", "search"))
    if choices.kv_cache_dtype.value == "auto" and not case.on_cpu:
        yield "set quantization.kv_cache: fp8", replace(choices, kv_cache_dtype=Choice("fp8", "search"))
    heads, tp = facts.model.architecture.heads, choices.tensor_parallel_size.value
    if not case.on_cpu:
        for more in (tp * 2, tp * 4):
            if heads % more == 0:
                yield (
                    f"spread it over {more} such cards: engine.parallel.tensor: {more}",
                    replace(choices, tensor_parallel_size=Choice(more, "search"), replicas=Choice(1, "search")),
                )
