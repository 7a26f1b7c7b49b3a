"""Changes that cost nothing: flags, a merged adapter, the same cards divided otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc.cost.kv_cache import keeps_prefixes
from deployc.cost.parallel import undivided
from deployc.cost.prediction import setting
from deployc.cost.steady import most_running, steady
from deployc.rules.case import Case
from deployc.rules.changes.option import Option, changed, flag, key, option
from deployc.rules.remedies import highest_share, with_value

TOKENS = (2048, 8192)
"""Tokens of a step that are worth a try: fewer let decoding go on beside prompts, more take a prompt in fewer steps."""
SIZES = (1, 2, 4, 8)
"""Cards of one engine."""
WORTH = 0.02
"""Share of the card that is worth to be taken in."""


def free(case: Case) -> Iterator[Option]:
    """One at a time, those that take nothing from anybody first."""
    choices, deploy = case.choices, case.deploy
    if choices.adapter_mode.value == "serve" and len(deploy.adapters) == 1:
        merged = replace(with_value(choices, adapter_mode="merge"), max_lora_rank=None, max_loras=None)
        words = f"merge the adapter: {key(case, 'adapters.0.mode', 'merge', 'serve')}"
        yield option(case, words, "free", merged)
    if choices.enforce_eager.value and not case.on_cpu:
        words = f"let CUDA graphs be captured: {flag(case, 'enforce-eager', 'false', 'true')}"
        yield option(case, words, "free", changed(case, enforce_eager=False))
    shared = deploy.workload.shared_prefix_tokens
    if shared and not choices.enable_prefix_caching.value and keeps_prefixes(case.facts):
        words = f"keep equal prefixes: {flag(case, 'enable-prefix-caching', 'true', 'false')}"
        yield option(case, words, "free", changed(case, enable_prefix_caching=True))
    yield from _division(case)
    yield from _at_once(case)
    yield from _tokens(case)
    yield from _share(case)


def _division(case: Case) -> Iterator[Option]:
    """More engines on fewer cards each, or fewer on more."""
    now = case.choices.tensor_parallel_size.value
    cards = now * case.choices.replicas.value
    for size in SIZES:
        if size == now or cards % size or undivided(case.facts.model.architecture, size):
            continue
        if size > now and case.facts.smallest.interconnect != "nvlink":
            continue
        replicas = cards // size
        words = f"{divided(case, size, replicas)}, on the same cards"
        yield option(case, words, "free", changed(case, tensor_parallel_size=size, replicas=replicas))


def divided(case: Case, size: int, replicas: int) -> str:
    """So many engines of so many cards each, in those of the file's keys that have to change."""
    now = case.choices
    named = [("engine.parallel.tensor", size, now.tensor_parallel_size.value)]
    if case.deploy.written("engine.parallel.replicas"):
        named.append(("engine.parallel.replicas", replicas, now.replicas.value))
    return ", ".join(key(case, name, value, before) for name, value, before in named if value != before)


def _at_once(case: Case) -> Iterator[Option]:
    """Fewer sequences at once, as many as meet the limit on TPOT; or as many as there is room and load for."""
    now, limit = case.choices.max_num_seqs.value, case.deploy.sla.tpot_p95
    at = setting(case.deploy, case.facts, case.choices)
    left = at.bill.kv_cache.value
    one, room = at.engine(left), most_running(at.room(left), 2**20)
    if limit is not None:
        low, high = 0, min(now, room)
        while low < high:
            middle = (low + high + 1) // 2
            meets = steady(one.step, at.request, middle, one.limits.max_num_batched_tokens).tpot <= limit
            low, high = (middle, high) if meets else (low, middle - 1)
        if 0 < low < min(now, room):
            yield _sequences(case, low)
    flight = case.deploy.workload.concurrency
    wanted = 2 * now if flight is None else -(-flight // case.choices.replicas.value)
    more = min(wanted, room)
    if more > now:
        yield _sequences(case, more)


def _sequences(case: Case, count: int) -> Option:
    words = f"set {flag(case, 'max-num-seqs', count, case.choices.max_num_seqs.value)}"
    return option(case, words, "free", changed(case, max_num_seqs=count))


def _tokens(case: Case) -> Iterator[Option]:
    now, seqs = case.choices.max_num_batched_tokens.value, case.choices.max_num_seqs.value
    for tokens in TOKENS:
        if tokens != now and tokens >= seqs and not case.on_cpu:
            words = f"set {flag(case, 'max-num-batched-tokens', tokens, now)}"
            yield option(case, words, "free", changed(case, max_num_batched_tokens=tokens))


def _share(case: Case) -> Iterator[Option]:
    now = case.choices.gpu_memory_utilization.value
    if case.on_cpu or case.prediction.bound_by != "kv-capacity":
        return
    share = highest_share(case)
    if share > now + WORTH:
        words = f"set {key(case, 'engine.gpu_memory_utilization', f'{share:.2f}', f'{now:.2f}')}"
        yield option(case, words, "free", changed(case, gpu_memory_utilization=share))
