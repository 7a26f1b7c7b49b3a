"""A step's batch in the terms that its time grows with: bytes, operations, rows of a product, and how it is launched.

No constants here. The formulas over these terms are arithmetic alone, so that a fit can hand in arrays of steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from deployc.cost.step.shape import Shape
from deployc.cost.step.work import Work


class Columns(NamedTuple):
    """One step, or an array of steps in each field."""

    rows: float  # of a product, as launched: a full graph pads its batch
    sampled: float
    decodes: float
    begun: float
    tokens: float
    kv_bytes: float  # read for decoding sequences
    kv_bytes_mixed: float  # the same in a step that has prompts too
    attention: float  # operations of prompt attention
    touched: float  # experts of a layer that some token is sent to
    full: float  # 1 where one graph holds the step,
    pieces: float  # 1 where graphs hold all but attention,
    launched: float  # 1 where kernels are launched one by one


def columns(shape: Shape, work: Work) -> Columns:
    """The terms of one step."""
    full = not work.tokens and not shape.eager and work.decodes <= shape.largest_full_graph
    pieces = not full and not shape.eager and work.rows <= shape.largest_graph
    rows = padded(work.decodes) if full else work.rows
    read = _read(shape, work)
    return Columns(
        rows=rows,
        sampled=work.sampled,
        decodes=work.decodes,
        begun=work.begun,
        tokens=work.tokens,
        kv_bytes=0.0 if work.tokens else read,
        kv_bytes_mixed=read if work.tokens else 0.0,
        attention=_attention(shape, work),
        touched=_touched(shape, work.rows),
        full=float(full),
        pieces=float(pieces),
        launched=float(not full and not pieces),
    )


def padded(sequences: int) -> int:
    """Rows of the graph that a pure decode step runs in (vllm/config/vllm.py, cudagraph_capture_sizes, 0.25.1)."""
    if sequences <= 2:
        return max(1, sequences)
    step = 4 if sequences <= 4 else 8 if sequences < 256 else 16
    return -(-sequences // step) * step


def _read(shape: Shape, work: Work) -> float:
    """Bytes of the cache that decoding sequences read, each with the mean context."""
    if not work.decodes:
        return 0.0
    mean = work.context / work.decodes
    return work.decodes * sum(size * min(most, mean) for most, size in shape.kv_reads)


def _attention(shape: Shape, work: Work) -> float:
    """Operations of prompt tokens with those before them."""
    if not work.tokens:
        return 0.0
    mean = work.area / work.tokens
    return work.tokens * sum(each * min(most, mean) for most, each in shape.attention)


def _touched(shape: Shape, rows: int) -> float:
    """Expected experts of a layer that `rows` tokens are sent to, if they choose evenly and apart."""
    experts = shape.experts
    if experts is None:
        return 0.0
    return experts.count * (1 - math.pow(1 - experts.per_token / experts.count, rows))
