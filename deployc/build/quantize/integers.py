"""Weights as integers of 8 or 4 bits.

`quantize` of compressed-tensors 0.19 (quantization/lifecycle/forward_helpers.py): the quotient by the scale is rounded
to the model's 16-bit dtype, clamped, and rounded to the nearest integer, ties to even. What follows the quotient is
done in float32, which holds it exactly and is faster. Runs in the build interpreter.
"""

from __future__ import annotations

import torch


def integers(values: torch.Tensor, scales: torch.Tensor, bits: int) -> torch.Tensor:
    """int8 of the shape of `values` […, n], by scales […, 1] of the same dtype."""
    top = 1 << (bits - 1)
    quotients = torch.div(values, scales).float()
    return quotients.clamp_(-top, top - 1).round_().to(torch.int8)


def packed(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """int32 [n, ceil(in · bits / 32)] of int8 [n, in]: unsigned from the lowest bits on, -2^(bits - 1) as 0.

    `pack_to_int32` of compressed-tensors 0.17 to 0.20 (compressors/pack_quantized/helpers.py in 0.19), for 4 and 8
    bits; what is left of the last word is 0.
    """
    lowest, short = -(1 << (bits - 1)), -rows.shape[1] % (32 // bits)
    if short:
        rows = torch.nn.functional.pad(rows, (0, short), value=lowest)
    if bits == 8:
        return rows.bitwise_xor(lowest).view(torch.int32)
    pairs = rows.view(torch.int16)
    nibbles = pairs.bitwise_right_shift(4).bitwise_and_(0xF0).bitwise_or_(pairs.bitwise_and(0x0F)).bitwise_xor_(0x88)
    return nibbles.to(torch.uint8).view(torch.int32)
