"""Weights as float8_e4m3fn.

`quantize` of compressed-tensors 0.19 (quantization/lifecycle/forward_helpers.py): the quotient by the scale, rounded to
the model's 16-bit dtype, plus a zero point of 0, clamped, and rounded to the nearest, ties to even. Runs in the build
interpreter.
"""

from __future__ import annotations

import torch

from deployc.build.quantize.scales import HALF_RANGE

MINUS_ZERO = torch.iinfo(torch.int16).min
"""The bits of -0.0 in 16 bit, the least of all as an integer."""


def floats(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """float8_e4m3fn of the shape of `values` [n, in], by scales [n, 1] of the same dtype."""
    quotients = torch.div(values, scales)
    if int(quotients.view(torch.int16).amin()) == MINUS_ZERO:
        quotients.add_(0.0)  # what adding the zero point does: -0.0 becomes 0.0
    if float(scales.amin()) < torch.finfo(values.dtype).smallest_normal:
        quotients.clamp_(-HALF_RANGE["fp8"], HALF_RANGE["fp8"])  # else no quotient rounds to more than the largest
    if quotients.dtype == torch.float16:
        quotients = quotients.float()  # torch casts float32 three times as fast
    return quotients.to(torch.float8_e4m3fn)
