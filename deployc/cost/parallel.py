"""Whether a model can be spread over so many cards: what the engine asserts when it makes its layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from deployc.types.architecture import Architecture

VOCABULARY_PADDING = 64
"""vllm/model_executor/layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE."""


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is no less."""
    return -(-value // multiple) * multiple


def padded_vocabulary(rows: int) -> int:
    """Rows of an embedding or output layer as the engine holds them over all ranks."""
    return round_up(rows, VOCABULARY_PADDING)


def undivided(architecture: Architecture, tensor_parallel_size: int) -> list[str]:
    """The dimensions, in words, that do not divide; empty where the engine would start.

    Heads: vllm/config/model.py. KV heads: each model's attention (`total_num_kv_heads % tp_size`, or the other way
    round where they are replicated). The rest: `divide` of vllm/distributed/utils.py.
    """
    tp, kv = tensor_parallel_size, architecture.kv_heads
    vocabulary = padded_vocabulary(architecture.vocab_size)
    inner = architecture.moe_intermediate_size if architecture.experts else architecture.intermediate_size
    found = []
    if architecture.heads % tp:
        found.append(f"{architecture.heads} attention heads")
    if kv % tp and tp % kv:
        found.append(f"{kv} KV heads")
    if inner % tp:
        found.append(f"the intermediate size {inner:,}")
    if vocabulary % tp:
        found.append(f"the padded vocabulary {vocabulary:,}")
    return found


class Placed(Protocol):
    """Parameters of one kind, and where they lie."""

    @property
    def bytes(self) -> int:
        """Of one."""

    @property
    def count(self) -> int: ...

    @property
    def layers(self) -> tuple[int, ...]: ...

    @property
    def place(self) -> str: ...


def stage_layers(layers: int, pipeline_parallel_size: int) -> list[int]:
    """How many decoder layers each stage has: what does not divide goes to the stages before the last, from behind
    (vllm/distributed/utils.py, get_pp_indices, 0.25.1)."""
    even, left = divmod(layers, pipeline_parallel_size)
    counts = [even] * pipeline_parallel_size
    for index in range(2, left + 2):
        counts[-index] += 1
    return counts


def stages(parts: Iterable[Placed], layers: int, pipeline_parallel_size: int) -> list[int]:
    """Bytes on a rank of each stage. Embedding on the first, output layer and last norm on the last, a tied embedding
    on both, encoders on every one (vllm/model_executor/models/*.py, `is_first_rank`, `is_last_rank`)."""
    if pipeline_parallel_size == 1:
        return [sum(part.bytes * part.count for part in parts)]
    outside = {"first": 0, "last": 0, "ends": 0, "every": 0}
    each = [0.0] * layers
    for part in parts:
        if part.place != "layer":
            outside[part.place] += part.bytes * part.count
            continue
        share = part.bytes * part.count / len(part.layers)
        for layer in part.layers:
            each[layer] += share
    totals, start = [], 0
    counts = stage_layers(layers, pipeline_parallel_size)
    for stage, count in enumerate(counts):
        first, last = stage == 0, stage == len(counts) - 1
        total = round(sum(each[start : start + count])) + outside["every"]
        total += outside["first"] * first + outside["last"] * last + outside["ends"] * (first or last)
        totals.append(total)
        start += count
    return totals
