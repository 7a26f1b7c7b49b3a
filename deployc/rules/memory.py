"""Memory: the engine's own verdicts at start, said before it, each with what would help and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from deployc import units
from deployc.cost.context import positions
from deployc.cost.kv_cache import Layout, layout
from deployc.cost.prediction import kv_room
from deployc.cost.request import mean_request
from deployc.diagnostics import Diagnostic, Span, error, note, warning
from deployc.rules.case import Case
from deployc.rules.remedies import highest_share, least_share, remedies, room, startable, with_value
from deployc.types.figure import Figure


def layers_fit_together(case: Case) -> Iterator[Diagnostic]:
    """unify_kv_cache_spec_page_size of vllm/v1/core/kv_cache_utils.py raises where pages cannot be made equal."""
    if refusal := layout(case.facts, case.choices).refusal:
        yield error(
            "DC307",
            "the engine cannot lay out the KV cache of this model",
            f"vLLM {case.facts.engine.version} wants pages of one size for all layers; this model has {refusal}.",
            "take a version that pads such pages, or another engine.parallel.tensor or quantization.kv_cache",
            case.deploy.at("engine.version"),
        )


def weights_fit(case: Case) -> Iterator[Diagnostic]:
    """Weights alone above the budget: loading them fails, or the check after it, as there is nothing left."""
    bill = case.prediction.memory
    limit = bill.total if case.on_cpu else bill.budget
    if bill.weights.value <= limit.value:
        return
    share = case.choices.gpu_memory_utilization.value
    end = "" if case.on_cpu else f" {_end(case)}"
    yield error(
        "DC300",
        "the weights do not fit",
        f"{_weights(case)} need {units.show_bytes(bill.weights.value)} a card; "
        f"{'the host has' if case.on_cpu else f'the budget, {share:.0%} of the card, is'} "
        f"{units.show_bytes(limit.value)}.{end}",
        _fix(case),
        _short_of(case),
        bill.weights.basis,
    )


def room_for_kv_cache(case: Case) -> Iterator[Diagnostic]:
    """_check_enough_kv_cache_memory of vllm/v1/core/kv_cache_utils.py: what is left must be more than nothing."""
    bill = case.prediction.memory
    if case.on_cpu or bill.weights.value > bill.budget.value:
        return
    left, needed = bill.kv_cache, layout(case.facts, case.choices).needed(case.choices.max_model_len.value)
    if left.low > 0 or 0 < left.high < needed:  # or: the engine comes to say that max_model_len is too long
        return
    spent = bill.budget.value - bill.weights.value
    overhead = _range(spent - left.high, spent - left.low)
    said = error if left.high <= 0 else warning
    yield said(
        "DC301",
        "no memory is left for the KV cache",
        f"Budget {units.show_bytes(bill.budget.value)} less weights {units.show_bytes(bill.weights.value)} and "
        f"{overhead} for activations, graphs and what is outside torch: {_left(left)}, "
        '"No available memory for the cache blocks".',
        _fix(case),
        _short_of(case),
        left.basis,
    )


def longest_request_fits(case: Case) -> Iterator[Diagnostic]:
    """One request of max_model_len must fit, or the engine refuses to start; the SLA may ask for more of them."""
    bill, length = case.prediction.memory, case.choices.max_model_len.value
    pages, left = layout(case.facts, case.choices), case.prediction.memory.kv_cache
    needed = pages.needed(length)
    if left.high <= 0 or (left.low <= 0 and needed <= left.high) or bill.weights.value > bill.budget.value:
        return  # said already: there may be no room at all
    if needed > left.low:
        there = startable(case)
        longest = pages.longest(max(there.prediction.memory.kv_cache.low, 0))
        fits = min(longest, positions(case.deploy, case.facts))
        under = "" if there is case else f" at the utilization that starts, {_share(there)},"
        said = error if needed > left.high else warning
        yield said(
            "DC302",
            "a request of full length does not fit into the KV cache",
            f"{_request(pages, length, needed)}; {_left(left)}.{_heads(case, pages)}"
            + (f" The longest that fits{under} is {units.show_count(longest)} tokens." if fits else ""),
            _fix(case, f"set workload.max_context to {fits}" if fits else ""),
            case.at("max-model-len", "workload.max_context"),
            left.basis,
        )
    else:
        yield from _several_fit(case, pages)


def length_was_fitted(case: Case) -> Iterator[Diagnostic]:
    """Where the file names no length, the model's own is asked for, and may have been too long."""
    limit, chosen = positions(case.deploy, case.facts), case.choices.max_model_len
    if chosen.because != "DC302":
        return
    pages, full = layout(case.facts, case.choices), replace(case, choices=with_value(case.choices, max_model_len=limit))
    needed, fits = pages.held(limit), units.show_count(chosen.value)
    yield note(
        "DC302",
        "a request of full length does not fit into the KV cache",
        f"No workload.max_context is set, and the model takes {units.show_count(limit)} tokens. "
        f"{_request(pages, limit, needed)}; {_left(case.prediction.memory.kv_cache)}.{_heads(case, pages)} "
        f"max_model_len is set to {fits}, {chosen.reason.partition(';')[0]}.",
        _fix(full, "set workload.max_context to what the load needs"),
        case.deploy.at("workload"),
    )


def _several_fit(case: Case, pages: Layout) -> Iterator[Diagnostic]:
    """`sla.full_length_requests`: as many as asked for, not only the one that the engine wants."""
    asked, length = case.deploy.sla.full_length_requests or 1, case.choices.max_model_len.value
    have = case.prediction.max_concurrency
    if asked == 1 or have.low >= asked:
        return
    said = error if have.high < asked else warning
    fits = pages.longest(case.prediction.memory.kv_cache.low, asked)
    yield said(
        "DC406",
        "fewer requests of full length fit than the SLA asks for",
        f"{have.value:.2f} requests of {units.show_count(length)} tokens fit at once, {asked} are asked for.",
        _fix(case, f"set workload.max_context to {fits}" if fits else ""),
        case.deploy.at("sla.full_length_requests"),
        have.basis,
    )


def load_fits(case: Case) -> Iterator[Diagnostic]:
    """Requests beyond the cache wait or are preempted: not a failure, but not what was asked for."""
    flight, choices = case.deploy.workload.concurrency, case.choices
    if flight is None or case.prediction.memory.kv_cache.value <= 0:
        return
    share, most = flight / choices.replicas.value, choices.max_num_seqs.value
    request = mean_request(case.deploy, prefix_caching=choices.enable_prefix_caching.value)
    holds = kv_room(layout(case.facts, choices), case.prediction.memory.kv_cache.value, request)
    if not 1 <= min(holds, most) < share * 0.98:
        return
    if most + 1 <= holds and not case.on_cpu:
        return  # what that costs and gives is simulated (DC540)
    if most + 1 <= holds:
        why = f"max_num_seqs {most} runs that many, the rest wait."
        fix, at = _more_seqs(holds, share), case.at("max-num-seqs", "workload.concurrency")
    else:
        why = f"the KV cache holds {units.show_count(int(holds))} of mean length, the rest wait or are preempted."
        fix, at = "; or ".join(["lower the concurrency", *room(case)]), case.deploy.at("workload.concurrency")
    yield warning(
        "DC306",
        "not all requests in flight run at once",
        f"{units.show_count(share)} are in flight on each engine; {why}",
        fix,
        at,
        case.prediction.usable_kv_cache_tokens.basis,
    )


def _more_seqs(holds: float, share: float) -> str:
    most = max(1, int(min(holds, math.ceil(share))))
    return f"raise max_num_seqs to {most} (the KV cache holds {units.show_count(int(holds))} of mean length)"


def host_holds_it(case: Case) -> Iterator[Diagnostic]:
    """CPU engine: weights, process and pool together against the host memory to be used."""
    bill = case.prediction.memory
    if not case.on_cpu or bill.weights.value > bill.total.value:
        return
    parts = (bill.weights, bill.activations, bill.non_torch)
    needed = [sum(getattr(part, side) for part in parts) for side in ("value", "low", "high")]
    total = bill.total.value
    left = Figure(total - needed[0], total - needed[2], total - needed[1], "B", "modelled")
    if left.low >= bill.kv_cache.value:
        return
    said = error if left.high < bill.kv_cache.value else warning
    yield said(
        "DC310",
        "the host's memory does not hold engine and KV cache",
        f"{units.show_bytes(bill.total.value)} less weights and process ({_range(needed[1], needed[2])}) leave "
        f"{_range(left.low, left.high)}; the KV cache takes {units.show_bytes(bill.kv_cache.value)}.",
        _fix(case, "raise hardware.host_memory, or lower workload.max_context or concurrency"),
        case.deploy.at("hardware.host_memory"),
        left.basis,
    )


def _request(pages: Layout, length: int, needed: int) -> str:
    """What one request takes, in words that hold for such layers."""
    tokens, size = units.show_count(length), units.show_bytes(needed)
    if pages.uniform:
        return f"{tokens} tokens of {units.show_bytes(pages.token_bytes)} each are {size} a card"
    if not pages.token_bytes:
        return f"A request takes {size} a card, however long it is"
    return f"A request of {tokens} tokens takes {size} a card (not every layer keeps every token)"


def _heads(case: Case, pages: Layout) -> str:
    """Why a token takes that much, where all layers keep the same."""
    model, kept = case.facts.model.architecture, case.facts.model.architecture.caches
    if not pages.uniform or len(kept) != 1 or not kept[0].kv_heads:
        return ""
    layers, heads = len(kept[0].layers), kept[0].kv_heads
    if kept[0].kind == "mla":
        return f" A token is one latent vector of {kept[0].head_dim} in each of {layers} layers, whole on every card."
    if model.heads == heads:
        return f" Each of the model's {heads} heads keeps keys and values of its own, in {layers} layers."
    return f" The model's {model.heads} heads share {heads} of keys and values, in {layers} layers."


def _short_of(case: Case) -> Span | None:
    """Where the cause stands: a utilization written too low for this card, else the card."""
    share = case.choices.gpu_memory_utilization
    if case.on_cpu or share.because == "DC303" or not share.value < least_share(case) <= highest_share(case):
        return case.deploy.at("hardware.gpu")
    return case.at("gpu-memory-utilization", "engine.gpu_memory_utilization")


def _share(case: Case) -> str:
    return f"{case.choices.gpu_memory_utilization.value:.2f}"


def _end(case: Case) -> str:
    """How it ends: while weights load, or at the check after."""
    free = case.facts.smallest.memory.value - case.held(case.facts.smallest)
    free -= case.context.high
    if case.prediction.memory.weights.value > free:
        return f"{units.show_bytes(max(0, free))} are free: CUDA runs out of memory while they load."
    return 'They load; then "No available memory for the cache blocks".'


def _fix(case: Case, first: str = "") -> str:
    parts = [part for part in (first, *remedies(startable(case))) if part]
    return "; or ".join(parts) or "free the card of what others hold, or take another"  # alone it would do


def _weights(case: Case) -> str:
    weights = case.choices.weights.value
    held = {"none": f"{case.choices.dtype.value} weights", "checkpoint": "Weights"}.get(weights, f"{weights} weights")
    return f"{held} of {units.show_count(case.facts.model.parameters)} parameters"


def _left(left: Figure) -> str:
    if left.high <= 0:
        return f"{_range(-left.high, -left.low)} are missing"
    if left.low < 0:
        return f"at most {units.show_bytes(left.high)} are left, perhaps nothing"
    return f"{_range(left.low, left.high)} are left"


def _range(low: float, high: float) -> str:
    if units.show_bytes(low) == units.show_bytes(high):
        return units.show_bytes(low)
    return f"{units.show_bytes(low)} to {units.show_bytes(high)}"
