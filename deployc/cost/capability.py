"""Which compute capabilities run what: intervals [since, before) of the engine's kernels."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts, GpuFacts

BF16_SINCE = (8, 0)
"""vllm/platforms/cuda.py, supported_dtypes."""
INT8_SINCE, INT8_BEFORE = (7, 5), (10, 0)
"""W8A8 int8: vllm, compressed_tensors_w8a8_int8 and csrc/quantization/w8a8: no kernel on Blackwell."""
FP8_KV_SINCE = (8, 9)
"""vllm/v1/attention/backends/triton_attn.py: e4m3 conversions; below, FlashInfer alone has them."""
KERNELS_SINCE = (7, 5)
"""The images of recent versions carry no kernels for V100 (7.0): vllm's CMakeLists.txt, CUDA_SUPPORTED_ARCHS."""


def has_kernels(card: GpuFacts, choices: Choices) -> bool:
    """Whether a card runs these weights in this dtype at all; what is not known of a card is not held against it."""
    capability = card.compute_capability
    if capability is None:
        return True
    if choices.weights.value == "int8" and not INT8_SINCE <= capability < INT8_BEFORE:
        return False
    return capability >= (BF16_SINCE if choices.dtype.value == "bfloat16" else KERNELS_SINCE)


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
