"""Which compute capabilities run what: intervals [since, before) of the engine's kernels."""

from __future__ import annotations

BF16_SINCE = (8, 0)
"""vllm/platforms/cuda.py, supported_dtypes."""
INT8_SINCE, INT8_BEFORE = (7, 5), (10, 0)
"""W8A8 int8: vllm, compressed_tensors_w8a8_int8 and csrc/quantization/w8a8: no kernel on Blackwell."""
FP8_KV_SINCE = (8, 9)
"""vllm/v1/attention/backends/triton_attn.py: e4m3 conversions; below, FlashInfer alone has them."""
KERNELS_SINCE = (7, 5)
"""The images of recent versions carry no kernels for V100 (7.0): vllm's CMakeLists.txt, CUDA_SUPPORTED_ARCHS."""


def words(capability: tuple[int, int]) -> str:
    """(8, 9) as "8.9"."""
    return f"{capability[0]}.{capability[1]}"
