"""Symmetric scales of rows or groups of inputs, as compressed-tensors 0.19 computes them.

`calculate_qparams` (compressed_tensors/quantization/utils/helpers.py): the largest magnitude over half the range of
the type, in the model's own 16-bit dtype; a scale that rounds to zero becomes the dtype's smallest step from 1. 0.17
and 0.20 give the same. Runs in the build interpreter.
"""

from __future__ import annotations

import torch

HALF_RANGE = {"int4": 7.5, "int8": 127.5, "fp8": 448.0}
"""(largest - smallest) / 2 of -8 … 7, -128 … 127 and float8_e4m3fn."""
SIGN = 0x7FFF
"""All bits of a 16-bit float but the sign: what is left of finite values grows with their magnitude."""


def scales(values: torch.Tensor, half_range: float) -> torch.Tensor:
    """[…, 1], of finite values […, n] in bfloat16 or float16."""
    largest = values.view(torch.int16).bitwise_and(SIGN).amax(-1, keepdim=True).view(values.dtype)
    found = largest.div_(half_range)
    return torch.where(found == 0, torch.finfo(values.dtype).eps, found)
