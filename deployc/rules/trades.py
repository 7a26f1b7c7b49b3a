"""What takes the KV cache's place in the budget: graphs, tokens of a step, a share lower than need be. Notes."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.batch import batch_defaults
from deployc.cost.cuda_graphs import twice
from deployc.cost.kv_cache import layout
from deployc.cost.memory import kv, memory
from deployc.cost.runner import counts_graphs
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, note
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.rules.start import graphs_outside_the_budget
from deployc.types.choices import Choices
from deployc.types.figure import exact

LEAST = 0.1
"""Share of the KV cache from which what takes it is worth a word."""
LOWERED = 0.05
"""Of the card: a share this much below the engine's own was lowered on purpose."""


def graphs_in_the_budget(case: Case) -> Iterator[Diagnostic]:
    """vllm/v1/worker/gpu_model_runner.py, profile_cudagraph_memory: of each kind two graphs are captured, the second
    is multiplied by their number. Graphs share a pool, so that the estimate may be far above what they take."""
    bill = case.prediction.memory
    if case.on_cpu or not counts_graphs(case.facts, case.choices):
        return
    without = bill.kv_cache.value + bill.cuda_graphs.value
    if bill.kv_cache.value <= 0 or bill.cuda_graphs.value < without * LEAST:
        return
    yield note(
        "DC312",
        "the estimate of the CUDA graphs is taken from the KV cache",
        f"vLLM {case.facts.engine.version} takes some {units.show_bytes(bill.cuda_graphs.value)} for them from the "
        f"budget: {_holds(case, case.choices, bill.kv_cache.value)} are left, without it "
        f"{_holds(case, case.choices, without)}. "
        "It captures two graphs of a kind and multiplies the second by their number; they share memory, so that it may "
        'take too much. The start log has both: "CUDA graph" estimated and actual.',
        "lower max-num-seqs where fewer requests are in flight: fewer graphs are captured",
        case.at("max-num-seqs", "engine.version"),
    )


def graphs_for_adapters(case: Case) -> Iterator[Diagnostic]:
    """Served adapters have every graph captured once with them and once without."""
    bill, choices = case.prediction.memory, case.choices
    if case.on_cpu or not twice(case.facts, choices) or not bill.cuda_graphs.value:
        return
    merged = memory(case.facts, with_value(choices, adapter_mode="merge"))[0].cuda_graphs
    more = bill.cuda_graphs.value - merged.value
    if more < max(bill.kv_cache.value, 0) * LEAST / 2 and not any(graphs_outside_the_budget(case)):
        return
    where = "from the budget" if counts_graphs(case.facts, choices) else "beside the budget"
    yield note(
        "DC313",
        "every CUDA graph is captured with adapters and without",
        f"vLLM {case.facts.engine.version} does so where adapters are served: "
        f"{units.show_bytes(bill.cuda_graphs.value)} {where} in place of "
        f"{units.show_bytes(merged.value)}.",
        "set mode: merge for an adapter that is always used, or lower max-num-seqs: fewer graphs are captured",
        case.deploy.at("adapters"),
    )


def tokens_of_a_step(case: Case) -> Iterator[Diagnostic]:
    """The profiling run is one step of max_num_batched_tokens; what it takes is no longer there for the KV cache."""
    written, usual = case.choices.max_num_batched_tokens.value, batch_defaults(case.facts)[0]
    if case.on_cpu or written <= usual or written_flag(case.deploy, case.facts, "max-num-batched-tokens") is None:
        return
    tokens = max(usual, case.choices.max_num_seqs.value)
    other = with_value(case.choices, max_num_batched_tokens=tokens)
    here, there = case.prediction.memory, memory(case.facts, other)[0]
    if here.kv_cache.value <= 0 or there.kv_cache.value - here.kv_cache.value < there.kv_cache.value * LEAST / 2:
        return
    yield note(
        "DC314",
        "more tokens a step take room from the KV cache",
        f"A step of {units.show_count(written)} tokens takes {units.show_bytes(here.activations.value)} for "
        f"activations, one of {units.show_count(tokens)}, the engine's own here, "
        f"{units.show_bytes(there.activations.value)}: {_holds(case, case.choices, here.kv_cache.value)} are left in "
        f"place of {_holds(case, other, there.kv_cache.value)}.",
        "remove it unless long prompts have to be computed in one step",
        case.at("max-num-batched-tokens", "engine.args"),
    )


def share_below_the_engines_own(case: Case) -> Iterator[Diagnostic]:
    """A lower utilization gives the engine less, and the KV cache is what it gives up: nothing is freed inside."""
    share, usual = case.choices.gpu_memory_utilization, case.facts.engine.gpu_memory_utilization
    if case.on_cpu or share.because in ("default", "DC303", "search") or share.value > usual - LOWERED:
        return
    if any(case.held(card) for card in case.facts.devices):
        return
    higher = with_value(case.choices, gpu_memory_utilization=usual)
    here, there = case.prediction.memory, memory(case.facts, higher)[0]
    if here.kv_cache.value <= 0:
        return
    yield note(
        "DC315",
        "a lower utilization leaves less for the KV cache",
        f"It is a budget for all that the engine holds: {share.value:.0%} of the card is "
        f"{units.show_bytes(here.budget.value)}, the engine's own {usual:.0%} {units.show_bytes(there.budget.value)}. "
        f"Weights and activations take the same of either: {_holds(case, case.choices, here.kv_cache.value)} are left "
        f"in place of {_holds(case, higher, there.kv_cache.value)}.",
        "leave it out where nothing else needs the rest of the card; what does belongs in hardware.reserved_memory",
        case.at("gpu-memory-utilization", "engine.gpu_memory_utilization"),
    )


def _holds(case: Case, choices: Choices, left: float) -> str:
    """ "5.37 GiB (98,304 KV tokens)"; requests where tokens are no capacity."""
    cache = kv(case.facts, choices, exact(left, "B"))
    if layout(case.facts, choices).uniform:
        return f"{units.show_bytes(left)} ({units.show_count(cache.tokens.value)} KV tokens)"
    return f"{units.show_bytes(left)} ({units.show_count(cache.concurrency.value)} requests of full length)"
