"""int8 W8A8: a symmetric scale a row for the weights, activations quantized by the engine as they come.

The `int-quantized` format of compressed-tensors (scheme "W8A8"): `weight` int8 [out, in], `weight_scale` [out, 1] in
the model's dtype, w ≈ weight · weight_scale. All is computed in the model's own dtype, as compressed-tensors does it,
so that what is written is to the byte what llm-compressor writes of the same 16-bit weights. Runs in the build
interpreter.
"""

from __future__ import annotations

import torch

HALF_RANGE = 127.5
"""compressed-tensors, `calculate_qparams`: a symmetric scale is the largest magnitude over half the range of 255."""


def row_scales(weight: torch.Tensor) -> torch.Tensor:
    """[out, 1], of a weight [out, in]; that of a row of zeros is the dtype's smallest step from 1."""
    scales = weight.abs().amax(dim=1, keepdim=True) / HALF_RANGE
    return torch.where(scales == 0, torch.finfo(weight.dtype).eps, scales)


def quantized(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """int8 [out, in]: round(weight / scale), ties to even, as compressed-tensors' `quantize` does it."""
    return (weight / scales).clamp_(-128, 127).round_().to(torch.int8)
