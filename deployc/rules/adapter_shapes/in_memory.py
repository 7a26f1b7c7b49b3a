"""Adapters that only peft can merge, with the whole model in memory, in float32: how much that takes, beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deployc.cost.weights.names import EMBEDDINGS, OUTPUTS
from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.groups import expand
from deployc.types.merging import is_streamed
from deployc.units import show_bytes

LIBRARIES = 1_500_000_000
"""Bytes allowed for a process that has loaded torch, transformers and peft; chosen, not measured."""
_WORK = 4
"""Of the largest tensor, what one module's merge holds at once: its change, the product, and the sum (peft 0.21.2)."""
SINGLE = 4  # bytes an element in float32


def memory(model: ModelFacts, adapters: Sequence[AdapterFacts]) -> int:
    """Bytes that peft's merge takes at most: every weight and the adapter in float32, one module's work, libraries."""
    largest = max((math.prod(group.shape) for group in model.tensors), default=0)
    own = sum(group.elements for adapter in adapters for group in adapter.tensors)
    return SINGLE * (model.parameters + 2 * own + _WORK * largest) + LIBRARIES


def by_peft(
    model: ModelFacts, adapters: Sequence[AdapterFacts], weights: Sequence[float], at: Span | None
) -> list[Diagnostic]:
    """What a merge by peft asks for; nothing where every adapter is merged tensor by tensor.

    A warning with the memory; an error where the adapter is not the only one, or counts with another weight than 1.
    """
    kinds = [adapter for adapter in adapters if not is_streamed(adapter.config)]
    if not kinds:
        return []
    said = [f"{adapter.name} ({_kind(adapter)})" for adapter in kinds]
    found = []
    if len(adapters) > 1 or any(weight != 1 for weight in weights):
        detail = f"{said[0]}: peft merges this kind, and only as the one adapter with weight 1."
        fix = "Merge it alone first and name the merged folder as model.source, or leave the others out."
        found.append(error("DC238", "this feature of an adapter is not supported yet", detail, fix, at))
    if model.architecture.tie_word_embeddings and (both := [name for a in kinds for name in _embeddings(a)]):
        detail = f"{said[0]}: {both[0]} is one tensor with another of {model.source}, which peft would change too."
        fix = "Train it without that module."
        found.append(error("DC238", "this feature of an adapter is not supported yet", detail, fix, at))
    detail = (
        f"{said[0]} is merged by peft with the whole model in memory: {show_bytes(memory(model, adapters))} at most."
    )
    fix = "Build where so much is free; an adapter of plain LoRA is merged tensor by tensor, in little memory."
    return [*found, warning("DC249", "the adapter is merged with the whole model in memory", detail, fix, at)]


def too_little(model: ModelFacts, adapters: Sequence[AdapterFacts], free: int) -> list[Diagnostic]:
    """An error where the host has not so much left."""
    needed = memory(model, adapters)
    if needed <= free:
        return []
    names = " and ".join(f"{adapter.name} ({_kind(adapter)})" for adapter in adapters)
    detail = f"{names}: peft's merge takes {show_bytes(needed)}; {show_bytes(free)} are available here."
    fix = "Free some, build on a larger host, or train plain LoRA, which is merged tensor by tensor."
    return [error("DC249", "the adapter is merged with the whole model in memory", detail, fix)]


def _embeddings(adapter: AdapterFacts) -> list[str]:
    """Input or output embeddings among what it changes."""
    names = [name.split(".") for group in adapter.tensors for name in expand(group)]
    return sorted({part for parts in names for part in parts if part in (*EMBEDDINGS, *OUTPUTS)})


def _kind(adapter: AdapterFacts) -> str:
    kind = str(adapter.config.get("peft_type", "LORA"))
    return f"LORA, init_lora_weights {adapter.config.get('init_lora_weights')!r}" if kind == "LORA" else kind
