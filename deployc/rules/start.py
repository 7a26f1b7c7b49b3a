"""Outside the budget: what must be free before anything is loaded, and room for CUDA graphs that it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deployc import units
from deployc.cost.memory import counts_graphs, memory
from deployc.cost.other_cards import starts
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.rules.remedies import eager, fewer_sequences, given, highest_share, with_value
from deployc.types.facts import GpuFacts
from deployc.types.figure import Figure


def start_check(case: Case) -> Iterator[Diagnostic]:
    """vllm/v1/worker/utils.py, request_memory: free memory must be at least ceil(total x utilization).

    The engine's own context is on the card by then, so a utilization of 1 never starts. Each rank asks its own card;
    one diagnostic a kind of card.
    """
    if case.on_cpu:
        return
    for name, total, held in dict.fromkeys(_kind(case, card) for card in case.facts.devices):
        yield from _check(case, name, total, held)


def graphs_outside_the_budget(case: Case) -> Iterator[Diagnostic]:
    """Where the version does not count the graphs, they take what utilization leaves of the card.

    They are captured when the KV cache is there and the activations are not: more than both leave, and the capture
    fails; more than the budget leaves, and the first full batch does, long after the start.
    """
    bill = case.prediction.memory
    if case.on_cpu or counts_graphs(case.facts) or bill.cuda_graphs.high == 0:
        return
    left, graphs = _outside(case), bill.cuda_graphs
    if left.low >= graphs.high:
        return
    fails = graphs.low > left.high + bill.activations.high
    when = "The capture fails." if fails else "The start may seem fine; the first full batch then runs out of memory."
    said = error if fails else warning
    yield said(
        "DC305",
        "CUDA graphs may not fit beside the budget",
        f"vLLM {case.facts.engine.version} captures them outside the budget: {_range(graphs)} into "
        f"{_range(left)} that utilization and the engine's own context leave. {when}",
        "; or ".join(_smaller_graphs(case, left)),
        case.at("gpu-memory-utilization", "engine.gpu_memory_utilization"),
        graphs.basis,
    )


def _kind(case: Case, card: GpuFacts) -> tuple[str, float, int]:
    return card.name, card.memory.value, case.held(card)


def _check(case: Case, name: str, total: float, held: int) -> Iterator[Diagnostic]:
    share, own = case.choices.gpu_memory_utilization.value, case.context
    wanted = math.ceil(total * share)
    least, most = total - held - own.high, total - held - own.low
    if least >= wanted:
        return
    others = f"others hold {units.show_bytes(held)} and " if held else ""
    said = error if most < wanted else warning
    yield said(
        "DC303",
        "too little memory is free at the start",
        f"{name}: of {units.show_bytes(total)} {others}the engine's own context takes {units.show_bytes(own.low)} to "
        f"{units.show_bytes(own.high)} before its check; {units.show_bytes(max(0, least))} to "
        f"{units.show_bytes(max(0, most))} are free then. It asks for {units.show_bytes(wanted)}, {share:.0%} of the "
        "card, not of what is free.",
        ("free the card, or " if held else "") + _lower(case, highest_share(case)),
        case.at("gpu-memory-utilization", "engine.gpu_memory_utilization"),
        own.basis,
    )


def _lower(case: Case, share: float) -> str:
    """Another utilization and what it leaves."""
    if share <= 0:
        return "use another card: there is no share of this one that is free"
    choices = with_value(case.choices, gpu_memory_utilization=share)
    bill, cache = memory(case.facts, choices)
    words = f"set engine.gpu_memory_utilization to at most {share:.2f}"
    if not starts(case.facts, choices):
        length = units.show_count(choices.max_model_len.value)
        return f"{words}, which does not surely leave room for a request of {length} tokens"
    return f"{words} ({given(case, choices, bill, cache)})"


def _outside(case: Case) -> Figure:
    """Bytes of the fullest card beside the budget, the engine's context and what others hold."""
    bill, own = case.prediction.memory, case.context
    beside = bill.total.value - bill.budget.value - case.held(case.facts.smallest)
    value, low, high = (max(0.0, beside - end) for end in (own.value, own.high, own.low))
    return Figure(value, low, high, "B", own.basis)


def _smaller_graphs(case: Case, left: Figure) -> Iterator[str]:
    """A smaller budget, fewer graphs, none."""
    bill = case.prediction.memory
    short = bill.cuda_graphs.high - left.low
    yield _lower(case, math.floor((bill.budget.value - short) / bill.total.value * 100) / 100)
    for choices in fewer_sequences(case):
        graphs = memory(case.facts, choices)[0].cuda_graphs
        if graphs.high <= left.low:
            yield (
                f"set engine.args: {{max-num-seqs: {choices.max_num_seqs.value}}} "
                f"(graphs of at most {units.show_bytes(graphs.high)}; the others wait)"
            )
            break
    change = eager(case)
    yield f"{change.words} (no graphs{change.price})"


def _range(figure: Figure) -> str:
    low, high = units.show_bytes(figure.low), units.show_bytes(figure.high)
    return low if low == high else f"{low} to {high}"
