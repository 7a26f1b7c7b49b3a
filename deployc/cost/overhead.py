"""What is neither weights nor KV: activation peak, CUDA graphs, the context and libraries outside torch, LoRA slots."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.weights import COLUMN, ROW, SERVED_BYTES, shard
from deployc.types.architecture import Architecture
from deployc.types.calibration import Calibration
from deployc.types.facts import Facts
from deployc.types.figure import Figure, exact

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""vllm/config/lora.py: MaxLoRARanks."""


@dataclass(frozen=True, slots=True)
class DummyStep:
    """The step with which the engine measures its activations."""

    max_num_seqs: int
    max_num_batched_tokens: int
    tensor_parallel_size: int = 1
    eager: bool = False


def capture_sizes(max_num_seqs: int, max_num_batched_tokens: int) -> int:
    """How many full CUDA graphs are captured: 1, 2, 4, then every 8 below 256, every 16 above (vllm/config/vllm.py).

    Full graphs go up to max_num_seqs; the piecewise ones above, up to twice that, share their pool.
    """
    top = min(max_num_seqs, 512, max_num_batched_tokens)
    sizes = [size for size in (1, 2, 4) if size <= top]
    return len(sizes) + len(range(8, min(top, 255) + 1, 8)) + len(range(256, top + 1, 16))


def activations(architecture: Architecture, calibration: Calibration, step: DummyStep, dtype: str) -> Figure:
    """The peak that the engine profiles at its start: the largest of three things that do not exist at once.

    One embedding table, while a cold compile cache is filled (`low` is a warm one; eager mode compiles nothing); the
    sampler's float32 copies of max_num_seqs x vocabulary, on every rank; the intermediates of one batch of tokens.
    """
    element, tp = SERVED_BYTES[dtype], step.tensor_parallel_size
    table = 0 if step.eager else architecture.vocab_size * architecture.hidden_size * element / tp
    rows = step.max_num_seqs * architecture.vocab_size * 4
    batch = step.max_num_batched_tokens * _intermediates(architecture, tp) * element
    tables, copies, fixed = (calibration[n] for n in ("activation_tables", "sampler_copies", "activation_fixed"))
    beside = calibration["activation_beside_experts" if architecture.experts else "activation_beside"]

    def peak(t: float, c: float, f: float, b: float) -> float:
        return max(t * table, c * rows, batch) + b * batch + f

    value = peak(tables.value, copies.value, fixed.value, beside.value)
    low = peak(tables.low, copies.low, fixed.low, beside.low)
    return Figure(value, low, peak(tables.high, copies.high, fixed.high, beside.high), "B", tables.basis)


def _intermediates(architecture: Architecture, tensor_parallel_size: int) -> float:
    """Elements a token at the widest point of a layer: gate, up and their product, and four of hidden size."""
    hidden = architecture.hidden_size
    if not architecture.experts:
        return 3 * architecture.intermediate_size / tensor_parallel_size + 4 * hidden
    routed = 3 * architecture.moe_intermediate_size / tensor_parallel_size + hidden
    return architecture.experts_per_token * routed + 4 * hidden


def cuda_graphs(
    architecture: Architecture, calibration: Calibration, max_num_seqs: int, max_num_batched_tokens: int, eager: bool
) -> Figure:
    """Memory of the captured graphs; zero in eager mode."""
    if eager:
        return exact(0, "B")
    amount = capture_sizes(max_num_seqs, max_num_batched_tokens) * architecture.layers
    return calibration["graph_bytes_per_size_layer"].times(amount, "B")


def non_torch(calibration: Calibration, tensor_parallel_size: int) -> Figure:
    """CUDA context, cuBLAS, NCCL buffers."""
    return calibration["non_torch_single" if tensor_parallel_size == 1 else "non_torch_parallel"].times(1, "B")


def lora_rank(rank: int) -> int | None:
    """The smallest max_lora_rank of the engine that holds a rank; None above its ladder."""
    return next((step for step in LORA_RANKS if step >= rank), None)


def lora_slots(facts: Facts, max_loras: int, max_lora_rank: int, tensor_parallel_size: int, dtype: str) -> Figure:
    """Slots of unmerged adapters: A [slots, r, in] and B [slots, out, r] for every linear (vllm/lora/layers/)."""
    elements = 0
    for tensor in facts.model.tensors:
        module = tensor.pattern.split(".")[-2:][0]
        if (module in COLUMN or module in ROW) and len(tensor.shape) == 2:
            out, inner = shard(tensor, facts.model.architecture, tensor_parallel_size)
            elements += (out + inner) * max_lora_rank * max_loras * tensor.count
    return exact(elements * SERVED_BYTES[dtype], "B")
