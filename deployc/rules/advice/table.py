"""The settings that are judged: where each is written, and the configuration without it.

`without` gives None where the file does not write the setting, or where it cannot cost anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from deployc import units
from deployc.cost.batch import batch_defaults
from deployc.cost.context import positions, share_longer
from deployc.cost.kv_cache import keeps_prefixes, layout
from deployc.cost.memory import memory
from deployc.cost.other_cards import starts
from deployc.cost.parallel import undivided
from deployc.cost.prediction import kv_room
from deployc.cost.request import mean_request
from deployc.cost.written import written_flag
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.types.choices import Choices

MOST = 10**6
"""Requests above which the KV cache is no limit; without layers that keep any it holds them without end."""


@dataclass(frozen=True, slots=True)
class Without:
    """The configuration without a setting: what is compared in words, and the change of the file that leads there."""

    choices: Choices
    compared: str
    fix: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A candidate: its code, and the flag or key that writes it."""

    code: str
    summary: str
    flag: str
    key: str
    without: Callable[[Case], Without | None]


def _written(case: Case, flag: str) -> bool:
    return written_flag(case.deploy, case.facts, flag) is not None


def holds(case: Case) -> int:
    """Requests of the workload's mean length whose KV fits at once."""
    request = mean_request(case.deploy, prefix_caching=case.choices.enable_prefix_caching.value)
    left = case.prediction.memory.kv_cache.value
    return math.floor(min(MOST, kv_room(layout(case.facts, case.choices), left, request)))


def _sequences(case: Case) -> Without | None:
    """As many as are in flight on one engine, of those that the KV cache holds at their mean length."""
    choices, load = case.choices, case.deploy.workload
    if not _written(case, "max-num-seqs"):
        return None
    usual, room = batch_defaults(case.facts)[1], holds(case)
    flight = math.ceil(load.concurrency / choices.replicas.value) if load.concurrency else usual
    count = max(1, min(flight, room, choices.max_num_batched_tokens.value))
    written = choices.max_num_seqs.value
    if count == written or written > count >= flight:
        return None
    return Without(
        with_value(choices, max_num_seqs=count),
        f"max-num-seqs {written} against {count}",
        f"set max-num-seqs to {count} (the KV cache holds {units.show_count(room)} of mean length)",
    )


def _tokens(case: Case) -> Without | None:
    """The engine's default for this card, or a token for each sequence."""
    written, tokens = case.choices.max_num_batched_tokens.value, batch_defaults(case.facts)[0]
    tokens = max(tokens, case.choices.max_num_seqs.value)
    if not _written(case, "max-num-batched-tokens") or tokens == written:
        return None
    return Without(
        with_value(case.choices, max_num_batched_tokens=tokens),
        f"max-num-batched-tokens {units.show_count(written)} against the engine's own {units.show_count(tokens)}",
        "remove it",
    )


def _eager(case: Case) -> Without | None:
    """`starts` and the rule about graphs outside the budget have the last word on whether graphs fit."""
    if not (_written(case, "enforce-eager") and case.choices.enforce_eager.value):
        return None
    captured = with_value(case.choices, enforce_eager=False)
    left = units.show_bytes(memory(case.facts, captured)[0].kv_cache.value)
    fix = f"remove it: graphs fit, with {left} left for the KV cache"
    return Without(captured, "Without CUDA graphs against with them", fix)


def _prefixes(case: Case) -> Without | None:
    """Worth something only where prompts share a prefix; of layers with a state none is kept by default."""
    off = _written(case, "enable-prefix-caching") and not case.choices.enable_prefix_caching.value
    shared = case.deploy.workload.shared_prefix_tokens
    if not (off and shared and keeps_prefixes(case.facts)):
        return None
    compared = f"Computing the shared {units.show_count(shared)} tokens of every prompt against keeping them"
    return Without(with_value(case.choices, enable_prefix_caching=True), compared, "remove it")


def _in_turn(case: Case) -> Without | None:
    if case.choices.async_scheduling.value:
        return None
    compared = "Host and GPU in turn against the host one step ahead"
    return Without(with_value(case.choices, async_scheduling=True), compared, "remove it")


def _unmerged(case: Case) -> Without | None:
    if case.choices.adapter_mode.value != "serve" or len(case.deploy.adapters) != 1:
        return None
    merged = replace(with_value(case.choices, adapter_mode="merge"), max_lora_rank=None, max_loras=None)
    return Without(merged, "Unmerged against merged", "set mode: merge, unless adapters come and go at run time")


def _spread(case: Case) -> Without | None:
    """The fewest cards that start an engine for the stated requests, and an engine on each of them."""
    now = case.choices.tensor_parallel_size.value
    cards, link = now * case.choices.replicas.value, case.facts.smallest.interconnect
    method = case.facts.model.quantization.get("quant_method")
    if link == "nvlink" or undivided(case.facts.model.architecture, now) or method in case.facts.lore.formats.unsplit:
        return None  # what does not start, or could not be spread over fewer either, has errors of its own
    for size in range(1, now):
        if cards % size or undivided(case.facts.model.architecture, size):
            continue
        choices = _startable(case, with_value(case.choices, tensor_parallel_size=size, replicas=cards // size))
        if choices is not None:
            over = "PCIe" if link in ("pcie", "none") else "an unknown link"
            engines = f"{cards // size} engines of {size} card{'' if size == 1 else 's'}"
            compared = f"tensor_parallel_size {now} over {over} against {engines} each"
            return Without(choices, compared, _fewer(case, choices))
    return None


def _startable(case: Case, choices: Choices) -> Choices | None:
    """With the longest max_model_len that surely starts; None where it would refuse some of the stated requests."""
    if starts(case.facts, choices):
        return choices
    longest = layout(case.facts, choices).longest(max(0.0, memory(case.facts, choices)[0].kv_cache.low))
    longest = min(longest, positions(case.deploy, case.facts))
    short = with_value(choices, max_model_len=longest)
    fits = longest > 0 and share_longer(case.deploy, longest) < 0.01
    return short if fits and starts(case.facts, short) else None


def _fewer(case: Case, choices: Choices) -> str:
    size, replicas, longest = (c.value for c in (choices.tensor_parallel_size, choices.replicas, choices.max_model_len))
    words = f"set engine.parallel: {{tensor: {size}, replicas: {replicas}}}"
    if longest == case.choices.max_model_len.value:
        return words
    key = "engine.args.max-model-len" if _written(case, "max-model-len") else "workload.max_context"
    return f"{words} and {key}: {longest}, the longest request that such an engine surely holds"


ARGS = "engine.args"
SETTINGS = (
    Setting("DC540", "max_num_seqs does not suit the load", "max-num-seqs", ARGS, _sequences),
    Setting("DC541", "max_num_batched_tokens does not suit the load", "max-num-batched-tokens", ARGS, _tokens),
    Setting("DC542", "CUDA graphs are turned off", "enforce-eager", ARGS, _eager),
    Setting("DC543", "prompts share a prefix that is not kept", "enable-prefix-caching", ARGS, _prefixes),
    Setting("DC544", "asynchronous scheduling is turned off", "async-scheduling", ARGS, _in_turn),
    Setting("DC245", "one adapter is served unmerged", "", "adapters.0.mode", _unmerged),
    Setting(
        "DC533", "tensor parallelism over PCIe where fewer cards hold the model", "tensor-parallel-size",
        "engine.parallel.tensor", _spread,
    ),
)  # fmt: skip
