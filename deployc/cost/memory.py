"""The bill of memory of the fullest card, and what is left for the KV cache.

GPU: KV = total x utilization - weights - activation peak - non-torch (- graphs, where that version counts them);
vllm/v1/worker/gpu_worker.py, determine_available_memory. CPU: the pool has a size of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.cost.activations import activations
from deployc.cost.cuda_graphs import cuda_graphs
from deployc.cost.kv_cache import layout
from deployc.cost.lora_slots import lora_slots
from deployc.cost.non_torch import non_torch
from deployc.cost.runner import counts_graphs
from deployc.cost.weights import loaded_bytes, weight_bytes
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts
from deployc.types.figure import Figure, doubted, exact, through, weakest
from deployc.types.prediction import Memory


@dataclass(frozen=True, slots=True)
class KvCache:
    """What fits: tokens as logged, usable tokens, requests of max_model_len, bytes of one token over all cards."""

    tokens: Figure
    usable: Figure
    concurrency: Figure
    bytes_per_token: Figure


def memory(facts: Facts, choices: Choices, weights: Figure | None = None) -> tuple[Memory, KvCache]:
    """Memory and KV cache of one engine under these choices.

    `weights`: those of a bill that differs in the sizes of batches and requests alone, where one was made.
    """
    known = weights if choices.pipeline_parallel_size.value == 1 else None
    bill = _cpu_bill(facts, choices) if facts.smallest.name == "cpu" else _gpu_bill(facts, choices, known)
    cache = kv(facts, choices, bill.kv_cache)
    if facts.model.architecture.assumed:
        return doubted(bill, but=("total", "budget")), doubted(cache)
    return bill, cache


def kv(facts: Facts, choices: Choices, left: Figure) -> KvCache:
    """Tokens and requests that fit into `left` bytes a card."""
    pages = layout(facts, choices)
    return KvCache(
        through(left, pages.logged_tokens, "tokens"),
        through(left, pages.usable_tokens, "tokens"),
        through(left, pages.concurrency, "requests"),
        exact(pages.token_bytes * choices.tensor_parallel_size.value, "B"),
    )


def _gpu_bill(facts: Facts, choices: Choices, weights: Figure | None) -> Memory:
    """The bill of the pipeline stage that is left with least."""
    bills = (_stage_bill(facts, choices, stage, weights) for stage in range(choices.pipeline_parallel_size.value))
    return min(bills, key=lambda bill: bill.kv_cache.value)


def _stage_bill(facts: Facts, choices: Choices, stage: int, weights: Figure | None) -> Memory:
    model = facts.model.architecture
    total = facts.smallest.memory.value
    budget = exact(math.ceil(total * choices.gpu_memory_utilization.value), "B")
    if weights is None:
        weights = exact(loaded_bytes(facts, choices, stage) - offloaded(facts, choices, stage), "B")
    peak = activations(facts, choices, stage)
    graphs = cuda_graphs(facts, choices, -(-model.layers // choices.pipeline_parallel_size.value))
    outside = non_torch(facts, choices)
    slots = lora_slots(facts, choices)
    spent = [weights, peak, outside, slots, *([graphs] if counts_graphs(facts, choices) else [])]
    return Memory(exact(total, "B"), budget, weights, peak, graphs, outside, slots, _left(budget, spent))


def offloaded(facts: Facts, choices: Choices, stage: int = 0) -> float:
    """Bytes of a rank's weights that lie in host memory: of its layers alone, the vocabulary's tables stay.

    vllm/model_executor/offloader/uva.py, 0.33.0, wraps what make_layers makes, a parameter at a time.
    """
    asked = choices.cpu_offload_bytes.value
    if not asked:
        return 0.0
    model = facts.model.architecture
    tables = (1 if model.tie_word_embeddings else 2) * model.vocab_size * model.hidden_size
    on_rank = tables * SERVED_BYTES[choices.dtype.value] / choices.tensor_parallel_size.value
    return max(0.0, min(asked, loaded_bytes(facts, choices, stage) - on_rank))


def _cpu_bill(facts: Facts, choices: Choices) -> Memory:
    """The process holds weights, its libraries and the pool; VLLM_CPU_KVCACHE_SPACE sets the pool, in whole GiB."""
    calibration = facts.calibration
    total = exact(facts.smallest.memory.value, "B")
    weights = exact(weight_bytes(facts, choices), "B")
    peak = calibration["cpu_activation"].times(1, "B")
    outside = calibration["cpu_process"].times(1, "B")
    slots = lora_slots(facts, choices)
    pool = exact(choices.cpu_kv_cache_bytes.value if choices.cpu_kv_cache_bytes else 0, "B")
    return Memory(total, total, weights, peak, exact(0, "B"), outside, slots, pool)


def _left(budget: Figure, spent: list[Figure]) -> Figure:
    return Figure(
        budget.value - sum(f.value for f in spent),
        budget.low - sum(f.high for f in spent),
        budget.high - sum(f.low for f in spent),
        "B",
        weakest(f.basis for f in [budget, *spent]),
    )
