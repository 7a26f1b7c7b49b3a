"""CUDA graphs: how many are captured, and what they take."""

from __future__ import annotations

from deployc.cost.activations import layer_width
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts
from deployc.types.figure import Figure, exact, total

LARGEST = 512
"""Tokens of the largest graph, whatever max_num_seqs: vllm/config/vllm.py, _set_cudagraph_sizes."""


def largest_graph(choices: Choices) -> int:
    """Tokens of the largest (piecewise) graph: vllm/config/vllm.py, max_cudagraph_capture_size."""
    return min(2 * choices.max_num_seqs.value, LARGEST, choices.max_num_batched_tokens.value)


def capture_sizes(max_num_seqs: int, max_num_batched_tokens: int) -> int:
    """How many full CUDA graphs are captured: 1, 2, 4, then every 8 below 256, every 16 above (vllm/config/vllm.py).

    Full graphs go up to max_num_seqs; the piecewise ones above, up to twice that, share their pool.
    """
    top = min(max_num_seqs, LARGEST, max_num_batched_tokens)
    sizes = [size for size in (1, 2, 4) if size <= top]
    return len(sizes) + len(range(8, min(top, 255) + 1, 8)) + len(range(256, top + 1, 16))


def twice(facts: Facts, choices: Choices) -> bool:
    """Whether every size is captured with adapters and once more without.

    vllm/config/compilation.py, cudagraph_specialize_lora.
    """
    return choices.adapter_mode.value == "serve" and facts.calibration.memory.graphs_twice


def captured(facts: Facts, choices: Choices) -> int:
    """Full graphs of one engine."""
    sizes = capture_sizes(choices.max_num_seqs.value, choices.max_num_batched_tokens.value)
    return sizes * (2 if twice(facts, choices) else 1)


def graph_parts(facts: Facts, choices: Choices, layers: int) -> tuple[float, float]:
    """What the graphs of a rank with so many layers grow with: sizes x layers, and bytes of the largest one's layer."""
    width = layer_width(facts.model.architecture, choices)
    return float(captured(facts, choices) * layers), largest_graph(choices) * width * SERVED_BYTES[choices.dtype.value]


def cuda_graphs(facts: Facts, choices: Choices, layers: int) -> Figure:
    """Bytes of the graphs: nodes of every layer for each size, and one pool that holds the largest one's tensors."""
    if choices.enforce_eager.value or facts.smallest.name == "cpu":
        return exact(0, "B")
    nodes, pool = graph_parts(facts, choices, layers)
    each, share = facts.calibration["graph_bytes_per_size_layer"], facts.calibration["graph_pool_layers"]
    return total((each.times(nodes, "B"), share.times(pool, "B")), "B")
