"""What is scored: every quantity of a start, what it rests on, and what the cost model says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from deployc.cost.activations import activations, moments
from deployc.cost.kv_cache import layout
from deployc.cost.memory import KvCache, kv, memory
from deployc.measure.calibrate.start import Start
from deployc.types.facts import Facts
from deployc.types.figure import Figure, through
from deployc.types.prediction import Memory

GIB = 2**30
ROUNDING = 0.005
"""Half of the last digit that the engine logs of sizes in GiB and of concurrency."""
_WEIGHTS = frozenset({"tensor_parallel_size", "quantization", "towers"})
_STEP = frozenset({"version", "tensor_parallel_size", "towers", "max_num_seqs", "max_num_batched_tokens"})
_OUTSIDE = frozenset({"version", "tensor_parallel_size"})
_BUDGET = frozenset({"card", "gpu_memory_utilization"})
_PAGES = frozenset({"tensor_parallel_size", "kv_cache_dtype"})
_KV = _WEIGHTS | _STEP | _BUDGET


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of a start: the inputs that it rests on, and how to read it from the prediction, in its own unit."""

    rests_on: frozenset[str]
    of: Callable[[Memory, KvCache, Figure], Figure]  # of the bill, the cache, its blocks


def _gib(figure: Figure) -> Figure:
    return Figure(figure.value / GIB, figure.low / GIB, figure.high / GIB, "GiB", figure.basis)


def _sum(*parts: Figure) -> Figure:
    value, low, high = (sum(getattr(part, end) for part in parts) for end in ("value", "low", "high"))
    return Figure(value, low, high, "B", parts[-1].basis)


QUANTITIES: Mapping[str, Quantity] = {
    "weights_gib": Quantity(_WEIGHTS, lambda m, *_: _gib(_sum(m.adapters, m.weights))),  # slots are made with them
    "activation_peak_gib": Quantity(_STEP, lambda m, *_: _gib(m.activations)),
    "non_torch_gib": Quantity(_OUTSIDE, lambda m, *_: _gib(m.non_torch)),
    "weights_and_non_torch_gib": Quantity(
        _WEIGHTS | _OUTSIDE, lambda m, *_: _gib(_sum(m.weights, m.adapters, m.non_torch))
    ),
    "total_non_kv_gib": Quantity(
        _WEIGHTS | _STEP, lambda m, *_: _gib(_sum(m.weights, m.adapters, m.non_torch, m.activations))
    ),
    "cudagraph_estimated_gib": Quantity(_STEP, lambda m, *_: _gib(m.cuda_graphs)),
    "cudagraph_gib": Quantity(_STEP, lambda m, *_: _gib(m.cuda_graphs)),
    "budget_gib": Quantity(_BUDGET, lambda m, *_: _gib(m.budget)),
    "kv_cache_gib": Quantity(_KV, lambda m, *_: _gib(m.kv_cache)),
    "kv_cache_tokens": Quantity(_KV | _PAGES, lambda _, c, __: c.tokens),
    "num_gpu_blocks": Quantity(_KV | _PAGES, lambda _, __, blocks: blocks),
    "max_concurrency": Quantity(_KV | _PAGES | {"max_model_len"}, lambda _, c, __: c.concurrency),
}
"""By the names that rows and score have in common. KV tokens and blocks of hybrids also rest on max_model_len."""

GIVEN_KV = {
    "kv_cache_tokens": "kv_tokens_from_kv",
    "num_gpu_blocks": "num_gpu_blocks_from_kv",
    "max_concurrency": "max_concurrency_from_kv",
}
"""Predicted once more from the measured GiB: how right the pages are, apart from the budget."""


def predicted(start: Start, measured: Mapping[str, float]) -> dict[str, Figure]:
    """What the cost model says of all that the row measured.

    Of a pipeline the engine logs the parts of the first stage, and the blocks that every stage has room for; so no
    pages are judged there from the measured GiB.
    """
    facts, choices = start.facts, start.choices
    bill, cache = memory(facts, choices)
    if start.warm:
        bill = _with_peak(bill, _warm(start, bill.activations))
        cache = kv(facts, choices, bill.kv_cache)
    blocks = _blocks(start, bill.kv_cache)
    piped = choices.pipeline_parallel_size.value > 1
    logged = _with_peak(bill, activations(facts, choices, 0)) if piped else bill
    made = {name: quantity.of(logged, cache, blocks) for name, quantity in QUANTITIES.items() if name in measured}
    given = measured.get("kv_cache_gib")
    if given is not None and given > 0 and not piped:
        room = Figure(given * GIB, (given - ROUNDING) * GIB, (given + ROUNDING) * GIB, "B", "exact")
        pages, blocks = kv(facts, choices, room), _blocks(start, room)
        made |= {new: QUANTITIES[name].of(bill, pages, blocks) for name, new in GIVEN_KV.items() if name in measured}
    return made


def _warm(start: Start, cold: Figure) -> Figure:
    """The peak of a start whose compile cache was filled before: nothing is compiled, so that moment is not its peak.

    A plan must assume a cold one, and `memory` does.
    """
    fixed = start.facts.calibration.memory.activation_fixed.value
    moved = [moment.bytes for moment in moments(start.facts, start.choices) if moment.name != "compile"]
    value = min(cold.value, max(moved) + fixed)
    return Figure(value, min(cold.low, value), max(value, cold.high - (cold.value - value)), "B", cold.basis)


def _with_peak(bill: Memory, peak: Figure) -> Memory:
    """The bill with another activation peak, and so much more or less for the cache."""
    was, left = bill.activations, bill.kv_cache
    kept = left.value + was.value - peak.value
    low, high = left.low + was.high - peak.high, left.high + was.low - peak.low
    return replace(bill, activations=peak, kv_cache=Figure(kept, min(low, kept), max(high, kept), "B", left.basis))


def _blocks(start: Start, room: Figure) -> Figure:
    pages = layout(start.facts, start.choices)
    return through(room, pages.blocks, "blocks")


def rests_on(quantity: str, facts: Facts) -> frozenset[str]:
    """The inputs that a quantity of such a model rests on, by the names of `Start.assumed`."""
    old = next((name for name, new in GIVEN_KV.items() if new == quantity), None)
    hybrid = any(cache.kind != "full" for cache in facts.model.architecture.caches)
    lengths = frozenset({"max_model_len", "max_num_batched_tokens", "version"}) if hybrid else frozenset()
    if old is None:
        pages = lengths if quantity in GIVEN_KV else frozenset()
        return QUANTITIES[quantity].rests_on | pages
    return _PAGES | lengths | ({"max_model_len"} if old == "max_concurrency" else frozenset())
