"""Memory: the engine's own verdicts at start, said before it, each with what would help and by how much."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.context import positions
from deployc.cost.kv_cache import layout
from deployc.cost.memory import counts_graphs
from deployc.cost.prediction import kv_room, mean_request
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.rules.remedies import changes, remedies
from deployc.types.figure import Figure


def weights_fit(case: Case) -> Iterator[Diagnostic]:
    """Weights alone above the budget: the engine runs out of memory while loading."""
    bill = case.prediction.memory
    limit = bill.total if case.on_cpu else bill.budget
    if bill.weights.value <= limit.value:
        return
    share = case.choices.gpu_memory_utilization.value
    yield error(
        "DC300",
        "the weights do not fit",
        f"{_weights(case)} need {units.show_bytes(bill.weights.value)} a card; "
        f"{'the host has' if case.on_cpu else f'the budget, {share:.0%} of the card, is'} "
        f"{units.show_bytes(limit.value)}.",
        _fix(case),
        case.deploy.at("hardware.gpu"),
        bill.weights.basis,
    )


def room_for_kv_cache(case: Case) -> Iterator[Diagnostic]:
    """Nothing left after weights and overhead: "No available memory for the cache blocks"."""
    bill = case.prediction.memory
    if case.on_cpu or bill.weights.value > bill.budget.value:
        return
    spent = bill.budget.value - bill.weights.value
    overhead = _range(spent - bill.kv_cache.high, spent - bill.kv_cache.low)
    yield from _by_band(
        case,
        bill.kv_cache,
        one_block(case),
        "DC301",
        "no memory is left for the KV cache",
        f"Budget {units.show_bytes(bill.budget.value)} less weights {units.show_bytes(bill.weights.value)} and "
        f"overhead {overhead} leaves {_range(bill.kv_cache.low, bill.kv_cache.high)}.",
    )


def longest_request_fits(case: Case) -> Iterator[Diagnostic]:
    """One request of max_model_len must fit, or the engine refuses to start; the SLA may ask for more of them."""
    bill, length = case.prediction.memory, case.choices.max_model_len.value
    requests = case.deploy.sla.full_length_requests or 1
    pages = layout(case.facts, case.choices)
    needed = pages.needed(length)
    nothing = bill.kv_cache.high < one_block(case) or bill.weights.value > bill.budget.value
    if nothing or bill.kv_cache.value < one_block(case) <= needed <= bill.kv_cache.high:
        return  # said already: there may be no room at all
    fits = pages.longest(max(bill.kv_cache.low, 0))
    yield from _by_band(
        case,
        bill.kv_cache,
        needed,
        "DC302",
        "a request of full length does not fit into the KV cache",
        f"{units.show_count(length)} tokens"
        + (f" of {units.show_bytes(pages.token_bytes)} each are " if pages.uniform else " take ")
        + f"{units.show_bytes(needed)} a card; "
        f"{_range(bill.kv_cache.low, bill.kv_cache.high)} are left."
        + (f" The longest that fits is {units.show_count(fits)} tokens." if fits else ""),
        f"set workload.max_context to {min(fits, positions(case.deploy, case.facts))}" if fits else "",
        at="workload.max_context",
    )
    if requests > 1 and needed <= bill.kv_cache.low:
        yield from _by_band(
            case,
            case.prediction.max_concurrency,
            float(requests),
            "DC406",
            "fewer requests of full length fit than the SLA asks for",
            f"{case.prediction.max_concurrency.value:.2f} requests of {units.show_count(length)} tokens fit at once, "
            f"{requests} are asked for.",
            f"set workload.max_context to {pages.longest(bill.kv_cache.low, requests)}",
            at="sla.full_length_requests",
        )


def load_fits(case: Case) -> Iterator[Diagnostic]:
    """Requests beyond the cache wait or are preempted: not a failure, but not what was asked for."""
    flight, choices = case.deploy.workload.concurrency, case.choices
    if flight is None or case.prediction.memory.kv_cache.value <= 0:
        return
    share = flight / choices.replicas.value
    request = mean_request(case.deploy, prefix_caching=choices.enable_prefix_caching.value)
    pages, left = layout(case.facts, choices), case.prediction.memory.kv_cache.value
    room = min(kv_room(pages, left, request), float(choices.max_num_seqs.value))
    if 1 <= room < share * 0.98:
        by_flag = choices.max_num_seqs.value < share
        yield warning(
            "DC306",
            "not all requests in flight run at once",
            f"{units.show_count(share)} are in flight on each engine; "
            + (
                f"max_num_seqs {choices.max_num_seqs.value} runs that many, the rest wait."
                if by_flag
                else f"the KV cache holds {units.show_count(room)} of mean length, the rest wait or are preempted."
            ),
            "raise max_num_seqs" if by_flag else "; or ".join(["lower the concurrency", *changes(case)]),
            case.at("max-num-seqs", "workload.concurrency") if by_flag else case.deploy.at("workload.concurrency"),
            case.prediction.usable_kv_cache_tokens.basis,
        )


def graphs_outside_the_budget(case: Case) -> Iterator[Diagnostic]:
    """Where the version does not count the graphs, they take what utilization leaves: out of memory after the start."""
    bill = case.prediction.memory
    counted = counts_graphs(case.facts)
    if case.on_cpu or counted or bill.cuda_graphs.high == 0:
        return
    held = max(case.deploy.hardware.reserved_memory, case.facts.smallest.used)
    outside = bill.total.value - bill.budget.value - held - case.facts.calibration["context_before_check"].value
    if bill.cuda_graphs.high > outside:
        context = case.facts.calibration["context_before_check"].high
        lower = max(0.1, 1 - (bill.cuda_graphs.high + context + held) / bill.total.value)
        yield warning(
            "DC305",
            "CUDA graphs may not fit beside the budget",
            f"vLLM {case.facts.engine.version} captures them outside the budget: "
            f"{_range(bill.cuda_graphs.low, bill.cuda_graphs.high)} into {units.show_bytes(max(outside, 0))}.",
            f"set engine.gpu_memory_utilization to {lower:.2f}",
            case.deploy.at("engine.gpu_memory_utilization"),
            bill.cuda_graphs.basis,
        )


def host_holds_it(case: Case) -> Iterator[Diagnostic]:
    """CPU engine: weights, process and pool together against the host memory to be used."""
    bill = case.prediction.memory
    if not case.on_cpu or bill.weights.value > bill.total.value:
        return
    parts = (bill.weights, bill.activations, bill.non_torch)
    needed = [sum(getattr(part, side) for part in parts) for side in ("value", "low", "high")]
    total = bill.total.value
    left = Figure(total - needed[0], total - needed[2], total - needed[1], "B", "modelled")
    yield from _by_band(
        case,
        left,
        bill.kv_cache.value,
        "DC310",
        "the host's memory does not hold engine and KV cache",
        f"{units.show_bytes(bill.total.value)} less weights and process ({_range(needed[1], needed[2])}) leave "
        f"{_range(left.low, left.high)}; the KV cache takes {units.show_bytes(bill.kv_cache.value)}.",
        "raise hardware.host_memory, or lower workload.max_context or concurrency",
        at="hardware.host_memory",
    )


def one_block(case: Case) -> int:
    """Bytes of one block of KV on a card."""
    return layout(case.facts, case.choices).block_bytes


def _by_band(
    case: Case,
    have: Figure,
    need: float,
    code: str,
    summary: str,
    detail: str,
    first: str = "",
    at: str = "hardware.gpu",
) -> Iterator[Diagnostic]:
    """An error where even the best end of the band is too little, a warning where the limit lies inside it."""
    if have.low >= need:
        return
    said = error if have.high < need else warning
    yield said(code, summary, detail, _fix(case, first), case.deploy.at(at), have.basis)


def _fix(case: Case, first: str = "") -> str:
    return "; or ".join([part for part in (first, *remedies(case)) if part])


def _weights(case: Case) -> str:
    held = {"none": f"{case.choices.dtype.value} weights", "int8": "int8 weights"}.get(
        case.choices.weights.value, "Weights"
    )
    return f"{held} of {units.show_count(case.facts.model.parameters)} parameters"


def _range(low: float, high: float) -> str:
    if units.show_bytes(low) == units.show_bytes(high):
        return units.show_bytes(low)
    return f"{units.show_bytes(low)} to {units.show_bytes(high)}"
