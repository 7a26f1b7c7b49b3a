"""What the time of a step depends on of a model, a card and a configuration: sizes, bytes, peaks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.cost.cuda_graphs import LARGEST, largest_graph
from deployc.cost.kv_cache import layout
from deployc.cost.parallel import padded_vocabulary
from deployc.cost.runner import model_runner
from deployc.cost.step.kernel import kernel
from deployc.cost.weights import Product, products, streamed_bytes
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of all layers on one rank."""

    layers: int
    count: int  # a layer
    per_token: int
    weights: float  # of one expert of one layer, on this rank
    bytes: float  # of all of them


@dataclass(frozen=True, slots=True)
class Shape:
    """One rank of one engine. Bytes, elements, operations; peaks in bytes/s and operations/s."""

    layers: int
    products: tuple[Product, ...]  # of dense layers; experts are apart
    kernel: str  # which kernel quantized products run on: a name in Constants.kernels
    experts: Experts | None
    head: tuple[int, int]  # inputs and outputs of the output layer
    rest: float  # bytes of weights that a step reads beside products, experts and output layer
    moved: float  # elements of activations that a layer reads and writes for a token
    kv_reads: tuple[tuple[float, float], ...]  # tokens at most (a window's), and bytes that one of them has read
    attention: tuple[tuple[float, float], ...]  # the same, and operations a token and a token before it in a prompt
    vocabulary: int
    hidden_size: int
    tensor_parallel_size: int
    adapter_rank: int  # 0 = no unmerged adapter
    eager: bool
    runner: str  # "V1" | "V2": the engine's model runner
    largest_full_graph: int  # sequences that one graph holds whole
    largest_graph: int  # tokens that graphs hold in pieces
    element: int  # bytes of an activation
    bandwidth: float
    peak: float  # of 16-bit products
    kernel_peak: float  # of quantized ones
    link: float  # bytes/s between ranks, one direction


@dataclass(frozen=True, slots=True)
class Peaks:
    """The card's own figures, or what stands in for those that are not known."""

    bandwidth: float
    flops: float  # 16 bit
    fp8: float
    int8: float
    link: float


def shape(facts: Facts, choices: Choices, peaks: Peaks) -> Shape:
    """The shape of one rank under these choices."""
    model, tp = facts.model.architecture, choices.tensor_parallel_size.value
    every = products(facts, choices)
    dense = tuple(p for p in every if not p.routed)
    experts = _experts(model, [p for p in every if p.routed], facts, choices)
    head = (model.hidden_size, padded_vocabulary(model.vocab_size) // tp)
    element = SERVED_BYTES[choices.dtype.value]
    known = sum(p.bytes for p in dense) + (experts.bytes if experts else 0.0) + math.prod(head) * element
    name = kernel(facts, choices)
    return Shape(
        layers=model.layers,
        products=dense,
        kernel=name,
        experts=experts,
        head=head,
        rest=max(0.0, streamed_bytes(facts, choices) - known),
        moved=_moved(model, dense, tp),
        kv_reads=layout(facts, choices).reads,
        attention=_attention(model, tp),
        vocabulary=model.vocab_size,
        hidden_size=model.hidden_size,
        tensor_parallel_size=tp,
        adapter_rank=choices.max_lora_rank.value if choices.max_lora_rank else 0,
        runner=model_runner(facts, choices),
        eager=choices.enforce_eager.value or facts.smallest.name == "cpu",
        largest_full_graph=min(choices.max_num_seqs.value, LARGEST),
        largest_graph=largest_graph(choices),
        element=element,
        bandwidth=peaks.bandwidth,
        peak=peaks.flops,
        kernel_peak={"fp8": peaks.fp8, "int8": peaks.int8}.get(name, peaks.flops),
        link=peaks.link,
    )


def _experts(model: Architecture, routed: list[Product], facts: Facts, choices: Choices) -> Experts | None:
    """From the products where experts are numbered; else from config.json and what the rank holds beside the rest."""
    if not model.experts:
        return None
    layers = len(model.moe_layers) or model.layers
    tp = choices.tensor_parallel_size.value
    if routed:
        weights = sum(p.weights for p in routed) / (layers * model.experts)
        return Experts(layers, model.experts, model.experts_per_token, weights, float(sum(p.bytes for p in routed)))
    weights = 3 * model.hidden_size * (model.moe_intermediate_size or model.intermediate_size) / tp
    stacked = sum(g.bytes for g in facts.model.tensors if ".experts." in g.pattern) / tp
    return Experts(layers, model.experts, model.experts_per_token, weights, stacked)


def _moved(model: Architecture, dense: tuple[Product, ...], tp: int) -> float:
    """Inputs and outputs of a layer's products, the residual twice, and of an MLP its two halves once more."""
    ends = sum((p.inputs + p.outputs) * p.count for p in dense) / model.layers
    inner = model.moe_intermediate_size * model.experts_per_token if model.experts else model.intermediate_size
    return ends + 4 * model.hidden_size + inner / tp


def _attention(model: Architecture, tp: int) -> tuple[tuple[float, float], ...]:
    """QK and PV: 4 x heads x head size, for each layer that looks back; a window looks back no further."""
    each = 4.0 * model.heads * model.head_dim / tp
    kinds: dict[float, int] = {}
    for cache in model.caches:
        if cache.kind != "state":
            most = float(cache.window) if cache.kind in ("sliding", "chunked") else math.inf
            kinds[most] = kinds.get(most, 0) + len(cache.layers)
    return tuple((most, each * layers) for most, layers in kinds.items())
