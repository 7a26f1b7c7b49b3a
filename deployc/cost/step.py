"""The time of one engine step: a roofline of bytes and operations, with a floor of the host's own work.

decode >= (weights + KV read) / bandwidth; prefill >= 2 x parameters x tokens / peak (Kaplan et al. 2020, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployc.cost.cuda_graphs import largest_graph
from deployc.cost.kv_cache import layout
from deployc.cost.weights import is_embedding, loaded, streamed_bytes
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Factor

Side = Literal["value", "low", "high"]
"""Which end of every constant: `high` is the optimistic engine (fast), `low` the pessimistic one."""

GDDR_LIMIT = 1.9e12
"""Bandwidth in bytes/s under which a card has GDDR memory: the fastest such card (RTX 5090) has 1.79e12."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of one engine costs, in seconds, on one side of the band."""

    weight_seconds: float  # reading once what every token needs
    expert_seconds: float  # reading once all routed experts
    expert_share: float  # of them one token touches
    kv_reads: tuple[tuple[float, float], ...]  # tokens of context at most (a window's), and reading the KV of one
    flop_seconds_per_token: float  # matrix work of one token
    attention_seconds: float  # x tokens x context, in prefill
    reduce_seconds_per_token: float
    fixed: float  # kernels' launch and waits, a step
    host: float  # the scheduler's own work, a step
    host_per_sequence: float
    front: float  # HTTP, tokenizer, admission, a request
    host_prefill: float  # launching a step that no graph covers
    captured: int  # tokens of a step up to which graphs cover it
    batch: int  # tokens of a step at most

    def decode(self, sequences: float, context: float) -> float:
        """One token for each of `sequences`, each with `context` tokens of KV."""
        touched = 1 - float((1 - self.expert_share) ** sequences)
        bytes_time = self.weight_seconds + touched * self.expert_seconds
        bytes_time += sequences * self.kv_seconds(context)
        gpu = max(bytes_time, sequences * self.flop_seconds_per_token) + self.fixed
        gpu += sequences * self.reduce_seconds_per_token
        return max(gpu, self.host + sequences * self.host_per_sequence)

    def kv_seconds(self, context: float) -> float:
        """Reading what one sequence of `context` tokens keeps."""
        return sum(seconds * min(most, context) for most, seconds in self.kv_reads)

    def prefill(self, tokens: float, context: float) -> float:
        """`tokens` of a prompt on top of `context` tokens before them; without the fixed part of a step.

        A step longer than any captured graph is launched kernel by kernel: small models wait for the host there.
        """
        average = context + tokens / 2
        token = self.flop_seconds_per_token + average * self.attention_seconds + self.reduce_seconds_per_token
        launched = self.host_prefill * max(1.0, tokens / self.batch) if tokens > self.captured else 0.0
        return max(tokens * token, launched)


def step(facts: Facts, choices: Choices, side: Side = "value") -> Step:
    """The step of one engine. `side` picks the end of each constant's range."""
    model, tp = facts.model.architecture, choices.tensor_parallel_size.value
    slow: Side = "value" if side == "value" else "high" if side == "low" else "low"
    constants = facts.calibration

    def at(name: str, end: Side = side) -> float:
        return float(getattr(constants[name], end))

    on_cpu = facts.smallest.name == "cpu"
    bandwidth, peak = _bandwidth(facts, side), _peak(facts, choices, side)
    streamed = streamed_bytes(facts, choices)
    stream = at("weight_stream_hbm" if bandwidth > GDDR_LIMIT else "weight_stream_gddr")
    active = _active_parameters(facts) / tp
    share = at("gemm_share") * (at("moe_gemm_share") if model.experts else 1.0)
    routed = _routed_share(facts)
    launch = "cpu_layer_launch" if on_cpu else "eager_layer_launch" if choices.enforce_eager.value else "layer_launch"
    hops = 2 * model.layers if tp > 1 else 0
    hop = "allreduce_latency_nvlink" if facts.smallest.interconnect == "nvlink" else "allreduce_latency"
    unmerged = at("lora_unmerged") if choices.adapter_mode.value == "serve" else 1.0
    joined = _joined(facts, side)
    reduced = hops * 2 * (tp - 1) / tp * model.hidden_size * 2 / joined if hops else 0.0
    return Step(
        weight_seconds=(1 - routed) * streamed / (bandwidth * stream) / unmerged,
        expert_seconds=routed * streamed / (bandwidth * stream) / unmerged,
        expert_share=model.experts_per_token / model.experts if model.experts else 0.0,
        kv_reads=tuple((most, b / (bandwidth * at("kv_stream"))) for most, b in layout(facts, choices).reads),
        flop_seconds_per_token=2 * active / (peak * share) / unmerged,
        attention_seconds=4 * model.layers * model.heads / tp * model.head_dim / (peak * share),
        reduce_seconds_per_token=reduced,
        fixed=model.layers * at(launch, slow) + hops * at(hop, slow),
        host=at("cpu_step", slow),
        host_per_sequence=at("cpu_sequence", slow),
        front=at("request_front", slow),
        host_prefill=0.0 if on_cpu else model.layers * at("prefill_layer_launch", slow),
        captured=0 if choices.enforce_eager.value else largest_graph(choices),
        batch=choices.max_num_batched_tokens.value,
    )


def _active_parameters(facts: Facts) -> float:
    """Parameters that one token meets: all matrices but the embedding lookup; of experts those it is sent to."""
    model, total = facts.model.architecture, 0.0
    for tensor in loaded(facts):
        if is_embedding(tensor) and not model.tie_word_embeddings:
            continue
        routed = model.experts and ".experts." in tensor.pattern
        total += facts.model.weights_in(tensor) * (model.experts_per_token / model.experts if routed else 1.0)
    return total


def bytes_for_one_token(facts: Facts, choices: Choices) -> float:
    """Weights that a rank reads for a token of one sequence alone: of routed experts those it is sent to."""
    model, routed = facts.model.architecture, _routed_share(facts)
    touched = model.experts_per_token / model.experts if model.experts else 1.0
    return streamed_bytes(facts, choices) * (1 - routed + routed * touched)


def _routed_share(facts: Facts) -> float:
    """Share of the parameters that lies in routed experts."""
    if not facts.model.architecture.experts:
        return 0.0
    weights = [(facts.model.weights_in(tensor), ".experts." in tensor.pattern) for tensor in loaded(facts)]
    return sum(count for count, routed in weights if routed) / sum(count for count, _ in weights)


def _bandwidth(facts: Facts, side: Side) -> float:
    known = facts.smallest.bandwidth
    return known.value if known else float(getattr(facts.calibration["cpu_bandwidth"], side))


def _peak(facts: Facts, choices: Choices, side: Side) -> float:
    """Dense operations/s of the type that the matrices run in."""
    flops = facts.smallest.flops
    wanted = ("int8",) if choices.weights.value == "int8" else ()
    for name in (*wanted, "fp16" if choices.dtype.value == "float16" else "bf16", "fp16", "bf16"):
        if name in flops:
            return float(flops[name].value)
    if facts.smallest.name == "cpu":
        return float(getattr(facts.calibration["cpu_flops"], side))
    ratio: Factor = facts.calibration["flops_unknown_per_bandwidth"]
    return float(getattr(ratio, side)) * _bandwidth(facts, side)


def _joined(facts: Facts, side: Side) -> float:
    """Bytes/s between cards, one direction: the profile's for NVLink; PCIe never reaches its own in an all-reduce."""
    card, constants = facts.smallest, facts.calibration
    if card.interconnect != "nvlink":
        return float(getattr(constants["pcie_bandwidth"], side))
    if card.interconnect_bandwidth is not None:
        return card.interconnect_bandwidth.value
    return float(getattr(constants["nvlink_bandwidth"], side))
