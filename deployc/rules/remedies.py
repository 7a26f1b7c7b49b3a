"""What would help where memory is short, each with the figure that it gives, computed by the cost model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from deployc import units
from deployc.cost import predict
from deployc.cost.batch import batch_defaults
from deployc.cost.capability import eight_bit, reads_fp8_kv
from deployc.cost.kv_cache import layout
from deployc.cost.memory import KvCache, memory
from deployc.cost.other_cards import on_card, smallest_card, starts
from deployc.cost.parallel import undivided
from deployc.cost.prediction import kv_room
from deployc.cost.request import mean_request
from deployc.cost.start_check import highest_utilization
from deployc.rules.case import Case
from deployc.types.choices import Choice, Choices
from deployc.types.facts import GpuFacts
from deployc.types.prediction import Memory

MOST = 4
SIZES = (2, 4, 8, 16)
"""Cards of one engine that machines have."""
FEWEST_TOKENS = 512
"""Tokens of a step below which prompts take too many steps to be advised."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the file, as words, as choices, and with what it costs."""

    words: str
    choices: Choices
    price: str = ""


def remedies(case: Case) -> list[str]:
    """Changes under which the engine starts with a request of full length; then the card it would take."""
    found = _helping(case, _changes(case))
    last = [] if found else _helping(case, _eager(case))
    return [text for text in (*found, _other_card(case), *last) if text]


def startable(case: Case) -> Case:
    """The case under the largest utilization that passes the start check, where its own does not: advice must work
    when all of it is followed."""
    share = highest_share(case)
    if case.on_cpu or share <= 0 or case.choices.gpu_memory_utilization.value <= share:
        return case
    choices = with_value(case.choices, gpu_memory_utilization=share)
    return replace(case, choices=choices, prediction=predict(case.deploy, case.facts, choices))


def room(case: Case) -> list[str]:
    """Changes that let more requests of the workload's mean length run at once."""
    request = mean_request(case.deploy, prefix_caching=case.choices.enable_prefix_caching.value)
    now = kv_room(layout(case.facts, case.choices), case.prediction.memory.kv_cache.value, request)
    found = []
    for change in (*_defaults(case), *_formats(case)):
        left = memory(case.facts, change.choices)[0].kv_cache.value
        then = kv_room(layout(case.facts, change.choices), left, request)
        if then > now * 1.05 and not _slower(case, change.choices):
            found.append(f"{change.words} (room for {units.show_count(int(then))} of mean length)")
    return found


def _slower(case: Case, choices: Choices) -> bool:
    """Whether the cards that serve now give fewer tokens with so many of them an engine."""
    cards, size = case.choices.tensor_parallel_size.value * case.choices.replicas.value, choices.tensor_parallel_size
    if size.value == case.choices.tensor_parallel_size.value or cards % size.value:
        return False
    there = predict(case.deploy, case.facts, with_value(choices, replicas=cards // size.value))
    return there.speed.tokens_per_second.value < case.prediction.speed.tokens_per_second.value


def given(case: Case, choices: Choices, bill: Memory, cache: KvCache) -> str:
    """What is left for KV under other choices, and what that holds: tokens where each takes the same, else requests."""
    card = " a card" if choices.tensor_parallel_size.value > 1 else ""
    left = f"{units.show_bytes(bill.kv_cache.value)}{card} for"
    if layout(case.facts, choices).uniform:
        return f"{left} {units.show_count(cache.tokens.value)} KV tokens"
    length = units.show_count(choices.max_model_len.value)
    return f"{left} {units.show_count(cache.concurrency.value)} requests of {length} tokens"


def with_value(choices: Choices, **changed: Any) -> Choices:
    """The choices with plain values put in place of others."""
    put: dict[str, Any] = {name: Choice(value, "search") for name, value in changed.items()}
    return replace(choices, **put)


def fewer_sequences(case: Case) -> Iterator[Choices]:
    """Half as many sequences at once, and half of those, down to one."""
    count = case.choices.max_num_seqs.value // 2
    while count >= 1:
        yield with_value(case.choices, max_num_seqs=count)
        count //= 2


def eager(case: Case) -> Change:
    """Without CUDA graphs, and what a single stream loses by that."""
    choices = with_value(case.choices, enforce_eager=True)
    now, then = (
        p.single_stream.tokens_per_second.value for p in (case.prediction, predict(case.deploy, case.facts, choices))
    )
    falls = f"falls from {now:.3g} to {then:.3g}" if f"{then:.3g}" != f"{now:.3g}" else f"stays at {now:.3g}"
    price = f"; one stream {falls} tokens/s"
    return Change("as the last resort set engine.args: {enforce-eager: true}", choices, price)


def highest_share(case: Case) -> float:
    """The largest gpu_memory_utilization, in whole per cent, with which the start check passes on every card."""
    ranks = case.choices.tensor_parallel_size.value
    return min(highest_utilization(case.deploy, case.facts, card, ranks) for card in case.facts.devices)


def _helping(case: Case, changes: Iterator[Change]) -> list[str]:
    """Those that surely help; where none does, those that may."""
    sure, likely = [], []
    for change in changes:
        bill, cache = memory(case.facts, change.choices)
        if bill.kv_cache.value <= 0 or cache.concurrency.value < 1 or bill.weights.value > bill.budget.value:
            continue
        text = f"{change.words} ({given(case, change.choices, bill, cache)}{change.price})"
        if starts(case.facts, change.choices):
            sure.append(text)
        else:
            likely.append(f"perhaps {text}")
    return (sure or likely)[:MOST]


def _changes(case: Case) -> Iterator[Change]:
    """From what costs nothing to what costs most."""
    if not case.on_cpu:
        share = least_share(case)
        if case.choices.gpu_memory_utilization.value < share <= highest_share(case):
            words = f"raise engine.gpu_memory_utilization to at least {share:.2f}"
            yield Change(words, with_value(case.choices, gpu_memory_utilization=share))
        yield from _smaller_batches(case)
    yield from _formats(case)


def _defaults(case: Case) -> Iterator[Change]:
    """The engine's own utilization and tokens a step, where the file leaves less for the KV cache than these do."""
    if case.on_cpu:
        return
    share = min(case.facts.engine.gpu_memory_utilization, highest_share(case))
    if case.choices.gpu_memory_utilization.value < share:
        choices = with_value(case.choices, gpu_memory_utilization=share)
        yield Change(f"raise engine.gpu_memory_utilization to {share:.2f}", choices)
    tokens = max(batch_defaults(case.facts)[0], case.choices.max_num_seqs.value)
    if case.choices.max_num_batched_tokens.value > tokens:
        choices = with_value(case.choices, max_num_batched_tokens=tokens)
        yield Change(f"set engine.args: {{max-num-batched-tokens: {tokens}}}", choices)


def _formats(case: Case) -> Iterator[Change]:
    """Fewer bytes a token or a weight, or more cards."""
    choices, facts = case.choices, case.facts
    if choices.kv_cache_dtype.value == "auto" and reads_fp8_kv(facts):
        yield Change("set quantization.kv_cache: fp8", with_value(choices, kv_cache_dtype="fp8"))
    plain = choices.weights.value == "none" and not facts.model.quantization
    if plain and (eight := eight_bit(facts)) is not None:
        yield Change(f"set quantization.weights: {eight}", with_value(choices, weights=eight))
    if not case.on_cpu:
        yield from _spread(case)


def _spread(case: Case) -> Iterator[Change]:
    """The fewest cards that surely do; else the fewest that may."""
    sizes = [
        size
        for size in SIZES
        if size > case.choices.tensor_parallel_size.value and not undivided(case.facts.model.architecture, size)
    ]
    spread = {size: with_value(case.choices, tensor_parallel_size=size, replicas=1) for size in sizes}
    sure = [size for size in sizes if starts(case.facts, spread[size])]
    likely = [size for size in sizes if memory(case.facts, spread[size])[1].concurrency.value >= 1]
    for size in (sure or likely)[:1]:
        yield Change(f"spread it over {size} such cards: engine.parallel.tensor: {size}", spread[size])


def _smaller_batches(case: Case) -> Iterator[Change]:
    """Fewer sequences or tokens a step: logits, sampler, layers and graphs are smaller. The mildest that suffices."""
    for choices in fewer_sequences(case):
        if starts(case.facts, choices):
            count = choices.max_num_seqs.value
            yield Change(f"set engine.args: {{max-num-seqs: {count}}}", choices, "; the others wait")
            break
    tokens = case.choices.max_num_batched_tokens.value // 2
    while tokens >= max(FEWEST_TOKENS, case.choices.max_num_seqs.value):
        choices = with_value(case.choices, max_num_batched_tokens=tokens)
        if starts(case.facts, choices):
            words = f"set engine.args: {{max-num-batched-tokens: {tokens}}}"
            yield Change(words, choices, "; long prompts take more steps")
            return
        tokens //= 2


def _eager(case: Case) -> Iterator[Change]:
    if not case.on_cpu and not case.choices.enforce_eager.value:
        yield eager(case)


def least_share(case: Case) -> float:
    """The smallest share of the card, in whole per cent, that surely holds one request of full length."""
    return math.ceil(_taken(case) / case.prediction.memory.total.value * 100) / 100


def _taken(case: Case) -> float:
    """Bytes of all that the budget must hold beside one request of full length, and that request."""
    bill, length = case.prediction.memory, case.choices.max_model_len.value
    page = layout(case.facts, case.choices).needed(length)
    if case.on_cpu:
        return bill.weights.value + bill.activations.high + bill.non_torch.high + max(page, bill.kv_cache.value)
    return bill.budget.value - bill.kv_cache.low + page


def _share_there(case: Case, card: GpuFacts) -> str:
    """The utilization that another card is judged by, where the file writes one that is less, or more than starts."""
    here, there = (c.gpu_memory_utilization for c in (case.choices, on_card(case.facts, case.choices, card)[1]))
    if here.because in ("default", "DC303") or (here.because != "search" and here.value == there.value):
        return ""
    return f", with engine.gpu_memory_utilization at {there.value:.2f}"


def _other_card(case: Case) -> str:
    """The smallest known card that would do; what it must have where none is known; "" where this one would."""
    if case.on_cpu:
        return f"raise hardware.host_memory to {units.show_bytes(_taken(case))}, if the host has it"
    size = case.choices.tensor_parallel_size.value
    card = smallest_card(case.facts, case.choices, starts)
    if card is not None and card.memory.value <= case.facts.smallest.memory.value:
        return ""
    if card is not None:
        many = f"{size} x " if size > 1 else ""
        shown, share = units.show_bytes(card.memory.value), _share_there(case, card)
        return f"use {many}{card.name} ({shown} as CUDA shows it), the smallest card that would do{share}"
    least = max(case.choices.gpu_memory_utilization.value, case.facts.engine.gpu_memory_utilization)
    return f"use a card with at least {units.show_bytes(_taken(case) / least)}"
