"""Which compute capabilities run what: intervals [since, before) of the engine's kernels."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts, GpuFacts

BF16_SINCE = (8, 0)
"""vllm/platforms/cuda.py, supported_dtypes."""
INT8_SINCE, INT8_BEFORE = (7, 5), (10, 0)
"""W8A8 int8: vllm, compressed_tensors_w8a8_int8 and csrc/quantization/w8a8: no kernel on Blackwell."""
FP8_SINCE = (8, 9)
"""W8A8 fp8: vllm 0.32, compressed_tensors_w8a8_fp8.py, get_min_capability. Below, the weights are widened in the kernel
and activations stay at 16 bit (Marlin: compressed_tensors_w8a16_fp8.py)."""
FP8_KV_SINCE = (8, 9)
"""vllm/v1/attention/backends/triton_attn.py: e4m3 conversions; below, FlashInfer alone has them."""
KERNELS_SINCE = (7, 5)
"""The images of recent versions carry no kernels for V100 (7.0): vllm's CMakeLists.txt, CUDA_SUPPORTED_ARCHS. Marlin,
which multiplies by packed integers and widened fp8, begins there too (kernels/linear/mixed_precision/marlin.py)."""
WITHOUT_CPU_KERNEL = ("int8-weight-only",)
"""The CPU engine has one for packed integers of 4 bits alone: vllm 0.32, kernels/linear/mixed_precision/cpu.py."""

WITHOUT_CPU_EXPERTS = ("fp8",)
"""Nor has it one for experts in fp8 with a scale a row: vllm 0.32, fused_moe/oracle/fp8.py ("Unsupported FP8 MoE
backend: NONE")."""


def eight_bit(card: GpuFacts) -> str | None:
    """The 8-bit weights that a card multiplies in their own type: "fp8" where it can, as it rounds outliers less; else
    "int8"; None where neither. Of a card whose capability is not known, as of the CPU, "int8"."""
    capability = card.compute_capability
    if capability is None:
        return "int8"
    if capability >= FP8_SINCE:
        return "fp8"
    return "int8" if INT8_SINCE <= capability < INT8_BEFORE else None


def has_kernels(card: GpuFacts, choices: Choices) -> bool:
    """Whether a card runs these weights in this dtype at all; what is not known of a card is not held against it."""
    capability = card.compute_capability
    if not has_weight_kernels(card, choices.weights.value):
        return False
    return capability is None or capability >= (BF16_SINCE if choices.dtype.value == "bfloat16" else KERNELS_SINCE)


def has_weight_kernels(card: GpuFacts, weights: str) -> bool:
    """Whether a card multiplies by weights of a format of ours."""
    capability = card.compute_capability
    if capability is None:
        return not (card.name == "cpu" and weights in WITHOUT_CPU_KERNEL)
    if weights == "int8":
        return INT8_SINCE <= capability < INT8_BEFORE
    return weights in ("none", "checkpoint") or capability >= KERNELS_SINCE


def reads_fp8_kv(facts: Facts) -> bool:
    """Whether this version has a kernel of its own for an fp8 KV cache of this model on this card; none is needed where
    nothing but states is kept."""
    kept, capability = facts.model.architecture.caches, facts.smallest.compute_capability
    if facts.smallest.name == "cpu" or all(cache.kind == "state" for cache in kept):
        return False
    if capability is None:
        return True
    latent = any(cache.kind == "mla" for cache in kept)
    if latent and not facts.calibration.memory.kv.latent_fp8_triton:
        return capability[0] in (9, 10)
    return capability >= FP8_KV_SINCE


def words(capability: tuple[int, int]) -> str:
    """(8, 9) as "8.9"."""
    return f"{capability[0]}.{capability[1]}"
