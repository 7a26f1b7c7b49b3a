"""Bytes of weights on a rank, from tensor shapes: how vLLM splits, pads, replicates, joins and quantizes them.

In: `Facts` and `Choices`. Out: bytes of all parameters, of those that a step reads, and what loading adds to them.
"""

from __future__ import annotations

from deployc.cost.parallel import stages
from deployc.cost.weights.formats import is_named, is_quantized
from deployc.cost.weights.held import Held, held, loaded
from deployc.cost.weights.linears import linears
from deployc.cost.weights.loading import Part, loading_gap
from deployc.cost.weights.names import EMBEDDINGS, read
from deployc.cost.weights.products import Product, products
from deployc.cost.weights.shard import shard
from deployc.types.choices import Choices
from deployc.types.facts import Facts, TensorGroup

__all__ = [
    "Held", "Part", "Product", "draft_bytes", "held", "is_embedding", "is_named", "is_quantized", "linears",
    "loaded", "loaded_bytes", "loading_gap", "products", "shard", "stage_bytes", "streamed_bytes", "weight_bytes",
]  # fmt: skip


def weight_bytes(facts: Facts, choices: Choices) -> int:
    """Bytes of parameters on the fullest rank: on the stage of the pipeline that holds most."""
    return max(stage_bytes(facts, choices))


def loaded_bytes(facts: Facts, choices: Choices, stage: int | None = None) -> int:
    """What the engine logs as "Model loading took" on a rank of a pipeline stage, without one of the fullest.

    The parameters, and `loading_gap` beside them.
    """
    by_stage = stage_bytes(facts, choices)
    at = by_stage.index(max(by_stage)) if stage is None else stage
    return by_stage[at] + sum(part.bytes for part in loading_gap(facts, choices, at))


def stage_bytes(facts: Facts, choices: Choices) -> list[int]:
    """Bytes of parameters on a rank of each pipeline stage."""
    return stages(held(facts, choices), facts.model.architecture.layers, choices.pipeline_parallel_size.value)


def streamed_bytes(facts: Facts, choices: Choices) -> int:
    """Bytes of weights read in one decode step by the rank that reads most.

    Not an untied input embedding, of which only rows are read, and no vision or audio encoder. All routed experts:
    which of them a step touches is the step's matter.
    """
    read_ones = [part for part in held(facts, choices) if part.tokens]
    return max(stages(read_ones, facts.model.architecture.layers, choices.pipeline_parallel_size.value))


def draft_bytes(facts: Facts, choices: Choices, *, shares_embedding: bool) -> int:
    """Bytes that a speculative draft model adds to a rank; `facts` are the draft model's own.

    All its parameters, tensor parallel as the target is. With `shares_embedding` (EAGLE, MTP: the proposer takes the
    target's, vllm/v1/spec_decode/eagle.py, load_model, 0.25.1) without input embedding and output layer.
    """
    parts = held(facts, choices)
    return sum(p.bytes * p.count for p in parts if not (shares_embedding and p.vocabulary))


def is_embedding(tensor: TensorGroup) -> bool:
    """Whether this is the input embedding."""
    return read(tensor.pattern).module in EMBEDDINGS
