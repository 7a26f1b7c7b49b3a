"""The same deployment on cards of another kind: which is the smallest that would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deployc.cost.batch import batch_defaults
from deployc.cost.capability import has_kernels, reads_fp8_kv
from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.non_torch import before_check
from deployc.cost.start_check import largest_share
from deployc.types.choices import Choices
from deployc.types.facts import Facts, GpuFacts

Holds = Callable[[Facts, Choices], bool]


def starts(facts: Facts, choices: Choices) -> bool:
    """Whether the engine starts for certain, and a request of max_model_len runs, in the least that may be left."""
    left = memory(facts, choices)[0].kv_cache.low
    return left >= 1 and layout(facts, choices).holds(left, choices.max_model_len.value)


def on_card(facts: Facts, choices: Choices, card: GpuFacts) -> tuple[Facts, Choices]:
    """As many cards of that kind, alone; what was chosen for the card at hand is chosen anew."""
    there = replace(facts, devices=(replace(card, used=0),) * len(facts.devices))
    tokens, share = choices.max_num_batched_tokens, choices.gpu_memory_utilization
    if tokens.because == "default":
        tokens = replace(tokens, value=max(batch_defaults(there)[0], choices.max_num_seqs.value))
    own = before_check(there, choices.tensor_parallel_size.value).high
    free = largest_share(card.memory.value, own)
    share = replace(share, value=max(0.01, min(max(facts.engine.gpu_memory_utilization, share.value), free)))
    return there, replace(choices, max_num_batched_tokens=tokens, gpu_memory_utilization=share)


def smallest_card(facts: Facts, choices: Choices, holds: Holds, beside: float = 0) -> GpuFacts | None:
    """The card with least memory on which `holds` holds, at the same tensor_parallel_size; None = there is none.

    Of the known ones and the one at hand, which may have no profile: a custom card, a slice.
    `beside`: bytes that any card must have beside the weights, to look at fewer of them.
    """
    least = memory(facts, choices)[0].weights.value + beside
    for card in sorted((facts.smallest, *facts.known_cards), key=lambda card: (card.memory.value, card.name)):
        if card.memory.value <= least or not has_kernels(facts, card, choices):
            continue
        there, chosen = on_card(facts, choices, card)
        if chosen.kv_cache_dtype.value.startswith("fp8") and not reads_fp8_kv(there):
            continue
        if holds(there, chosen):
            return card
    return None
