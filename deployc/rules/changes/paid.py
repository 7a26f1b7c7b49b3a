"""Changes that cost quality or money: other formats, more cards of the kind, another kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc.cost.capability import eight_bit, has_kernels, reads_fp8_kv
from deployc.cost.other_cards import on_card
from deployc.cost.parallel import undivided
from deployc.rules.case import Case
from deployc.rules.changes.free import divided
from deployc.rules.changes.option import Option, changed, key, option
from deployc.types.choices import Choices
from deployc.types.facts import GpuFacts

TIMES = (2, 3, 4, 8)
"""Times as many cards."""
OF_A_HOST = 16
"""Cards that one machine has at most."""
SAME = 1.05
"""Ratio of bandwidth or operations under which a card is no faster."""


def formats(case: Case) -> Iterator[Option]:
    """Fewer bytes a token, a weight, or both."""
    for words, choices in _formats(case):
        yield option(case, f"set {words}", "format", choices)


def _formats(case: Case) -> Iterator[tuple[str, Choices]]:
    cache = {"kv_cache_dtype": "fp8"}
    fp8 = key(case, "quantization.kv_cache", "fp8", "auto")
    narrower = case.choices.kv_cache_dtype.value == "auto" and reads_fp8_kv(case.facts)
    if narrower:
        yield fp8, changed(case, **cache)
    if (eight := _eight_bit(case)) is not None:
        words = key(case, "quantization.weights", eight, case.choices.weights.value)
        yield words, changed(case, weights=eight)
        if narrower:
            yield f"{words} and {fp8}", changed(case, weights=eight, **cache)


def _eight_bit(case: Case) -> str | None:
    """The 8-bit format that these weights can be made here and that this card multiplies."""
    plain = case.choices.weights.value == "none" and not case.facts.model.quantization
    return eight_bit(case.facts) if plain else None


def cards(case: Case) -> Iterator[Option]:
    """More cards of the kind: more engines, or with NVLink larger ones; at last with 8-bit weights too."""
    have, size = len(case.facts.devices), case.choices.tensor_parallel_size.value
    replicas = case.choices.replicas.value
    if case.on_cpu or len({card.name for card in case.facts.devices}) > 1:
        return
    for times in TIMES:
        count = size * replicas * times
        if count <= have or count > OF_A_HOST:
            continue
        yield _spread(case, count, size, replicas * times)
        larger = size * times
        if case.facts.smallest.interconnect == "nvlink" and not undivided(case.facts.model.architecture, larger):
            yield _spread(case, count, larger, replicas)
    if (eight := _eight_bit(case)) is not None and size * replicas * 2 <= OF_A_HOST:
        words = key(case, "quantization.weights", eight, case.choices.weights.value)
        yield _spread(case, size * replicas * 2, size, replicas * 2, f" and {words}", weights=eight)


def _spread(case: Case, count: int, size: int, replicas: int, more: str = "", **values: str) -> Option:
    """So many cards, `size` an engine."""
    facts = replace(case.facts, devices=(replace(case.facts.smallest, used=0),) * count)
    choices = changed(case, tensor_parallel_size=size, replicas=replicas, **values)
    if size == 1:
        form = f"{count} cards, one engine on each"
    else:
        form = (
            f"one engine over {count} cards" if replicas == 1 else f"{count} cards, {replicas} engines over {size} each"
        )
    words = f"{form}: {key(case, 'hardware.count', count, len(case.facts.devices))}"
    keys = divided(case, size, replicas)
    if size != case.choices.tensor_parallel_size.value or case.deploy.written("engine.parallel.replicas"):
        words += f", {keys}"
    return option(case, words + more, "cards", choices, facts)


def other_cards(case: Case) -> Iterator[Option]:
    """As many cards of a faster kind, the one that is least faster first. Nothing is known of what they cost."""
    here = case.facts.smallest
    if case.on_cpu:
        return
    able = (card for card in case.facts.known_cards if has_kernels(case.facts, card, case.choices))
    faster = [(_times(card, here), card) for card in able]
    for times, card in sorted(faster, key=lambda found: (found[0], found[1].memory.value, found[1].name)):
        if times < SAME:
            continue
        facts, choices = on_card(case.facts, case.choices, card)
        many = f"{len(case.facts.devices)} x " if len(case.facts.devices) > 1 else ""
        yield option(case, f"use {many}{card.name}", "card", choices, facts)


def _times(card: GpuFacts, here: GpuFacts) -> float:
    """How many times faster in what it is least faster: bandwidth, or 16-bit operations where both are known."""
    ratios = []
    if card.bandwidth and here.bandwidth:
        ratios.append(card.bandwidth.value / here.bandwidth.value)
    if card.flops.get("bf16") and here.flops.get("bf16"):
        ratios.append(card.flops["bf16"].value / here.flops["bf16"].value)
    return min(ratios, default=0.0)
