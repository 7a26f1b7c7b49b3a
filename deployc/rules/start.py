"""Outside the budget: what must be free before anything is loaded, and room for graphs and images left out of it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deployc import units
from deployc.cost.activations import encoder_bytes, profiles_images
from deployc.cost.cuda_graphs import twice
from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.other_cards import starts
from deployc.cost.runner import counts_graphs
from deployc.cost.towers import LARGEST
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, error, note, warning
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


def share_was_lowered(case: Case) -> Iterator[Diagnostic]:
    """Where the file names no utilization, the engine's default may be more than is free."""
    chosen, usual = case.choices.gpu_memory_utilization, case.facts.engine.gpu_memory_utilization
    if case.on_cpu or chosen.because != "DC303" or chosen.value > highest_share(case):
        return  # or no share starts, which the start check says
    held = any(case.held(card) for card in case.facts.devices)
    yield note(
        "DC303",
        "too little memory is free at the start",
        f"The engine's default asks for {usual:.0%} of the card, not of what is free: {chosen.reason}. "
        f"gpu_memory_utilization is set to {chosen.value:.2f}, the largest that surely starts.",
        "free the card, or take another with hardware.devices" if held else "",
        case.deploy.at("hardware"),
    )


def graphs_outside_the_budget(case: Case) -> Iterator[Diagnostic]:
    """Where the version does not count the graphs, they take what utilization leaves of the card.

    They are captured when the KV cache is there and the activations are not: more than both leave, and the capture
    fails; more than the budget leaves, and the first full batch does, long after the start.
    """
    bill = case.prediction.memory
    if case.on_cpu or counts_graphs(case.facts, case.choices) or bill.cuda_graphs.high == 0:
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


def images_outside_the_profile(case: Case) -> Iterator[Diagnostic]:
    """Where the version does not run the encoder when it profiles, the first image meets what the rest leaves."""
    facts, choices, bill = case.facts, case.choices, case.prediction.memory
    told = any(written_flag(case.deploy, facts, name) for name in ("limit-mm-per-prompt", "language-model-only"))
    if case.on_cpu or told or not facts.model.architecture.towers or profiles_images(facts, case.choices):
        return
    least, most = encoder_bytes(facts, choices), max(encoder_bytes(facts, choices, end) for end in (0, LARGEST))
    graphs = 0.0 if counts_graphs(facts, case.choices) else bill.cuda_graphs.high
    room = bill.activations.value + _outside(case).low - graphs
    if most <= room:
        return
    share = math.floor((bill.budget.value - (most - max(room, 0.0))) / bill.total.value * 100) / 100
    size = _range(Figure(least, least, most, "B", "modelled"))
    yield warning(
        "DC304",
        "images are not in the engine's memory profile",
        f"vLLM {facts.engine.version} does not run the encoder of {facts.model.architecture.name} when it profiles its "
        f"memory. A batch of its largest images takes {size}; {units.show_bytes(max(room, 0.0))} are left for it: the "
        "start seems fine, and the first such images run out of memory.",
        "use vLLM 0.27 or newer, which counts them; or " + _lower(case, share),
        case.deploy.at("engine.version"),
        "modelled",
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
    first = "free the card, or take another with hardware.devices, or " if held else ""
    said = error if most < wanted else warning
    yield said(
        "DC303",
        "too little memory is free at the start",
        f"{name}: of {units.show_bytes(total)} {others}the engine's own context takes {units.show_bytes(own.low)} to "
        f"{units.show_bytes(own.high)} before its check; {_free(least, most)} free then. "
        f"It asks for {units.show_bytes(wanted)}, {share:.0%} of the "
        "card, not of what is free.",
        first + _lower(case, highest_share(case)),
        case.at("gpu-memory-utilization", "engine.gpu_memory_utilization"),
        own.basis,
    )


def _free(least: float, most: float) -> str:
    if most <= 0:
        return "nothing is"
    return f"{units.show_bytes(max(0, least))} to {units.show_bytes(most)} are"


def _lower(case: Case, share: float) -> str:
    """Another utilization and what it leaves."""
    if share <= 0:
        return "use another card: there is no share of this one that is free"
    choices = with_value(case.choices, gpu_memory_utilization=share)
    bill, cache = memory(case.facts, choices)
    words = f"set engine.gpu_memory_utilization to at most {share:.2f}"
    if not starts(case.facts, choices):
        fits = layout(case.facts, choices).longest(max(bill.kv_cache.low, 0))
        also = f"and workload.max_context to {fits}" if fits else "which leaves no room for a request: use another card"
        return f"{words}{' ' if fits else ', '}{also}"
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
    beside = case.held(case.facts.smallest) + case.context.high + bill.cuda_graphs.high + 1  # the budget is rounded up
    yield _lower(case, math.floor((1 - beside / bill.total.value) * 100) / 100)
    if case.choices.adapter_mode.value == "serve" and len(case.deploy.adapters) == 1:
        merged = with_value(case.choices, adapter_mode="merge")
        graphs = memory(case.facts, merged)[0].cuda_graphs
        if graphs.high <= left.low:
            one = ", one for each size and not two" if twice(case.facts, case.choices) else ""
            yield f"set mode: merge (graphs of at most {units.show_bytes(graphs.high)}{one})"
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
