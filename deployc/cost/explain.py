"""Answers to what people ask about memory, from the same bill and layout as the verdicts. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from deployc.cost.activations import moments
from deployc.cost.arithmetic import prompt_arithmetic
from deployc.cost.capability import reads_fp8_kv
from deployc.cost.context import positions
from deployc.cost.cuda_graphs import captured, twice
from deployc.cost.kv_cache import Layout, layout
from deployc.cost.memory import memory
from deployc.cost.other_cards import smallest_card
from deployc.cost.prediction import kv_room
from deployc.cost.request import Request, mean_request
from deployc.cost.runner import counts_graphs
from deployc.cost.weights import loading_gap, weight_bytes
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice, Choices
from deployc.types.explanation import Explanation, Graphs, Share
from deployc.types.facts import Facts
from deployc.types.figure import Figure, exact, through
from deployc.types.prediction import Memory, Prediction


def explain(deploy: Deploy, facts: Facts, choices: Choices, prediction: Prediction) -> Explanation:
    """What this configuration needs of what it reserves, and what it could hold at most."""
    bill, pages = prediction.memory, layout(facts, choices)
    request = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value)
    flight = in_flight(deploy, choices, prediction)
    least, needed_for = least_kv(deploy, pages, request, flight.value)
    on_gpu = facts.smallest.name != "cpu"
    needed = _beside(bill, least, on_gpu)
    share = math.ceil(needed.high / bill.total.value * 100) / 100
    holds = partial(_holds, deploy, flight.value)
    card = smallest_card(facts, choices, holds, least / 2) if on_gpu else None
    peaks = _activations(facts, choices) if on_gpu else ()
    return Explanation(
        in_flight=flight,
        kv_cache_mean=exact(kv_of(pages, request.tokens, request, flight.value), "B"),
        kv_cache_p95=exact(kv_of(pages, request.long_input + request.long_output, request, flight.value), "B"),
        needed=needed,
        needed_for=needed_for,
        gpu_memory_utilization=share if on_gpu and share <= 1 else None,
        longest=through(bill.kv_cache, pages.longest, "tokens"),
        longest_fp8=_longest_fp8(facts, choices),
        positions=positions(deploy, facts),
        own_positions=facts.model.architecture.max_position_embeddings,
        requests_mean=through(bill.kv_cache, lambda left: kv_room(pages, left, request), "requests"),
        tokens_are_capacity=pages.uniform,
        smallest_card=card.name if card else "",
        smallest_card_memory=card.memory.value if card else 0,
        weights=_weights(facts, choices),
        activations=peaks,
        activations_kept=max(0.0, bill.activations.value - peaks[0].bytes) if peaks else 0.0,
        graphs=_graphs(facts, choices) if bill.cuda_graphs.value else None,
        arithmetic=prompt_arithmetic(deploy, facts, choices, prediction),
    )


def in_flight(deploy: Deploy, choices: Choices, prediction: Prediction) -> Figure:
    """Requests that run at once on one engine: as stated, or by Little's law; never more than max_num_seqs."""
    most, replicas = float(choices.max_num_seqs.value), choices.replicas.value
    if deploy.workload.concurrency is not None:
        return exact(min(most, math.ceil(deploy.workload.concurrency / replicas)), "requests")
    speed, answer = prediction.speed, mean_request(deploy).output_tokens

    def running(side: Callable[[Figure], float]) -> float:
        seconds = side(speed.ttft_p50) + answer * side(speed.tpot_p50)
        busy = speed.requests_per_second.value * seconds / replicas
        return most if not math.isfinite(busy) else max(1.0, min(most, busy))

    value, low, high = running(lambda f: f.value), running(lambda f: f.low), running(lambda f: f.high)
    return Figure(value, low, high, "requests", speed.ttft_p50.basis)


def kv_of(pages: Layout, tokens: float, request: Request, count: float) -> int:
    """Bytes that `count` requests of so many tokens hold, a prefix that they share once, and the null block."""
    shared = int(request.input_tokens - request.uncached_tokens) * pages.token_bytes
    each = pages.request_bytes(math.ceil(tokens)) - shared
    return math.ceil(count) * each + shared + pages.block_bytes


def least_kv(
    deploy: Deploy, pages: Layout, request: Request, flight: float
) -> tuple[int, Literal["load", "max_model_len"]]:
    """Bytes of KV without which the load does not run as stated, or the engine does not start; and which of the two."""
    load = kv_of(pages, request.long_input + request.long_output, request, flight)
    full = pages.needed(pages.max_model_len, deploy.sla.full_length_requests or 1)
    return (load, "load") if load >= full else (full, "max_model_len")


def _holds(deploy: Deploy, flight: float, facts: Facts, choices: Choices) -> bool:
    """Whether the least that may be left on such cards holds the load."""
    request = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value)
    least, _ = least_kv(deploy, layout(facts, choices), request, flight)
    return memory(facts, choices)[0].kv_cache.low >= least


def _beside(bill: Memory, kv: float, on_gpu: bool) -> Figure:
    """All that the budget must hold, with so much KV in it; on the CPU, process and pool."""
    parts, left = (bill.weights, bill.activations, bill.non_torch, bill.adapters), bill.kv_cache
    value, low, high = (
        (bill.budget.value - end for end in (left.value, left.high, left.low))
        if on_gpu
        else (sum(getattr(part, side) for part in parts) for side in ("value", "low", "high"))
    )
    return Figure(value + kv, low + kv, high + kv, "B", bill.activations.basis)


def _longest_fp8(facts: Facts, choices: Choices) -> Figure | None:
    if choices.kv_cache_dtype.value != "auto" or not reads_fp8_kv(facts):
        return None
    other = replace(choices, kv_cache_dtype=Choice("fp8", "search"))
    return through(memory(facts, other)[0].kv_cache, layout(facts, other).longest, "tokens")


def _weights(facts: Facts, choices: Choices) -> tuple[Share, ...]:
    added = (Share(part.name, part.bytes) for part in loading_gap(facts, choices))
    return (Share("parameters", weight_bytes(facts, choices)), *sorted(added, key=lambda share: -share.bytes))


def _graphs(facts: Facts, choices: Choices) -> Graphs:
    return Graphs(captured(facts, choices), twice(facts, choices), counts_graphs(facts, choices))


def _activations(facts: Facts, choices: Choices) -> tuple[Share, ...]:
    """The moments of the pipeline stage with the highest peak, largest first, as `activations` weighs them."""
    weigh = {"compile": facts.calibration.memory.compile_tables.value}
    stages = (
        [Share(m.name, m.bytes * weigh.get(m.name, 1.0)) for m in moments(facts, choices, stage)]
        for stage in range(choices.pipeline_parallel_size.value)
    )
    fullest = max(stages, key=lambda found: max(share.bytes for share in found))
    return tuple(share for share in sorted(fullest, key=lambda share: -share.bytes) if share.bytes)
