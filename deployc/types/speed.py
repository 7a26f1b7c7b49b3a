"""The constants of the speed model: what a GPU family and an engine version make of bytes, operations and launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployc.types.figure import Basis


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one kind of matrix kernel uses the card: "bf16", "fp8", "int8" (8-bit activations too), "w4a16", "w8a16"."""

    compute: float  # share of the dense peak that a large product reaches
    stream: float  # share of the bandwidth at which weights are read
    layer: float  # seconds a layer on the GPU beside the products: activations are quantized, scales applied
    host_layer: float  # seconds a layer on the host where its kernels are launched one by one


@dataclass(frozen=True, slots=True)
class Constants:
    """Shares of the card's own figures, seconds, and counts; all of one engine."""

    kernels: Mapping[str, Kernel]
    rows_lost: float  # tokens that a product takes as if they were more: tiles are never full
    columns_lost: float  # outputs or inputs lost to edges, likewise
    wave_lost: float  # share of a last wave of tiles, where it is not full, that passes unused
    kv_stream: float  # share of the bandwidth at which a decode step reads the cache
    kv_stream_mixed: float  # the same in a step that has prompts too
    attention: float  # share of the 16-bit peak in a prompt's attention
    moved: float  # times that a layer's activations cross the memory
    sampler: float  # times that a sequence's logits (4 bytes each) cross the memory
    layer: float  # seconds a layer between kernels
    step: float  # seconds a step on the GPU beside all layers
    expert_compute: float  # share of the dense peak in routed experts
    expert_stream: float  # share of the bandwidth at which they are read
    expert_rows: float  # tokens by which an expert's share of the batch is rounded up
    expert_layer: float  # seconds a layer: routing, sorting
    adapter_layer: float  # seconds a layer of an unmerged adapter
    adapter_moved: float  # times that a layer's activations cross the memory for it
    reduce_latency: float  # seconds an all-reduce
    reduce_bandwidth: float  # share of the link's bandwidth in one
    host_step: float  # seconds a step on the host, with the engine's V2 model runner
    host_step_v1: float  # the same with the V1 runner
    host_sequence: float  # seconds a sequence of it
    host_prompt: float  # seconds a request that begins
    host_token: float  # seconds a token of a prompt
    host_full: float  # seconds a layer where one graph holds the whole step
    host_piecewise: float  # seconds a layer where graphs hold all but attention
    host_eager: float  # seconds a layer in eager mode, whatever the kernel
    host_experts: float  # seconds a layer with routed experts, where no graph covers it
    host_adapter: float  # seconds a layer with an unmerged adapter, likewise
    travel: float  # seconds from a request's sending to its being seen by the scheduler
    front: float  # seconds from the end of a step to its tokens' being seen by the client
    spacing: float  # seconds between requests that are sent at once
    spacing_token: float  # the same for each token of a prompt
    server: float  # seconds more until a request is seen, through the HTTP server
    server_spacing: float  # seconds more between requests sent at once, through it


@dataclass(frozen=True, slots=True)
class Errors:
    """How far predictions were off on rows they were not fitted on: a factor each way that holds nine of ten.

    By quantity: "tokens_per_second", "ttft_p95" …; one mapping for each basis that a speed figure can have.
    """

    measured: Mapping[str, float]
    transferred: Mapping[str, float]
    modelled: Mapping[str, float]

    def of(self, basis: Basis, quantity: str) -> float:
        """The factor of one quantity."""
        factors: Mapping[str, float] = getattr(self, basis)
        return factors[quantity]


@dataclass(frozen=True, slots=True)
class SpeedProfile:
    """One fit, or a set of recalled constants where `rows` is empty."""

    gpu: str  # profile name of the card that was measured, or "cpu"
    compute_capability: tuple[int, int]
    engine_version: str
    said: str  # "vLLM 0.25.1 on NVIDIA H200"
    constants: Constants
    errors: Errors
    rows: tuple[str, ...]  # files of profiles/calibration/rows/
    measured: tuple[str, ...]  # kinds in the rows: kernels, "experts", "adapter", "tensor-parallel", "eager"
