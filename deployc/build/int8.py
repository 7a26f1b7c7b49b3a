"""int8 W8A8: a symmetric scale a row for the weights, activations quantized by the engine as they come.

The `int-quantized` format of compressed-tensors (scheme "W8A8"): `weight` int8 [out, in], `weight_scale` [out, 1] in
the model's dtype, w ≈ weight · weight_scale. Runs in the build interpreter.
"""

from __future__ import annotations

import torch

from deployc.build.tensors import DTYPES

HALF_RANGE = 127.5
"""compressed-tensors, `calculate_qparams`: a symmetric scale is the largest magnitude over half the range of 255."""
ZERO_ROW = torch.finfo(torch.float32).eps
"""compressed-tensors' scale of a row of zeros."""


def row_scales(weight: torch.Tensor, dtype: str) -> torch.Tensor:
    """[out, 1] in `dtype`, of a float32 weight [out, in].

    That of compressed-tensors, rounded up where `dtype` does not hold it: rounded down, the largest weights of the row
    would be clamped by up to half a step more.
    """
    exact = weight.abs().amax(dim=1, keepdim=True) / HALF_RANGE
    exact = torch.where(exact == 0, ZERO_ROW, exact)
    rounded = exact.to(DTYPES[dtype])
    if dtype == "F32":
        return rounded
    above = (rounded.view(torch.int16) + 1).view(rounded.dtype)  # of positive numbers the next larger one
    return torch.where(rounded.float() < exact, above, rounded)


def quantized(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """int8 [out, in]: round(weight / scale), ties to even, as compressed-tensors' `quantize` does in float32."""
    return (weight / scales.float()).clamp_(-128, 127).round_().to(torch.int8)
