"""CUDA graphs: how many are captured, and what they take."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure, exact

PADDED = 512
"""Tokens of the largest graph, whatever max_num_seqs: vllm/config/vllm.py, _set_cudagraph_sizes."""


def capture_sizes(max_num_seqs: int, max_num_batched_tokens: int) -> int:
    """How many full CUDA graphs are captured: 1, 2, 4, then every 8 below 256, every 16 above (vllm/config/vllm.py).

    Full graphs go up to max_num_seqs; the piecewise ones above, up to twice that, share their pool.
    """
    top = min(max_num_seqs, PADDED, max_num_batched_tokens)
    sizes = [size for size in (1, 2, 4) if size <= top]
    return len(sizes) + len(range(8, min(top, 255) + 1, 8)) + len(range(256, top + 1, 16))


def cuda_graphs(facts: Facts, choices: Choices, layers: int) -> Figure:
    """Bytes of the graphs of one rank with so many layers: a part for each size, a part for each size and layer."""
    if choices.enforce_eager.value or facts.smallest.name == "cpu":
        return exact(0, "B")
    sizes = capture_sizes(choices.max_num_seqs.value, choices.max_num_batched_tokens.value)
    if choices.adapter_mode.value == "serve":
        sizes *= 2  # with and without adapters: cudagraph_specialize_lora
    own, each = facts.calibration["graph_bytes_per_size"], facts.calibration["graph_bytes_per_size_layer"]
    parts = (own.times(sizes, "B"), each.times(sizes * layers, "B"))
    return Figure(sum(p.value for p in parts), sum(p.low for p in parts), sum(p.high for p in parts), "B", own.basis)
