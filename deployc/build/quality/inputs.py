"""Inputs of quantized layers rounded as an engine rounds them, token by token. Runs in the build interpreter.

Sources: vLLM 0.32.0, csrc/quantization/w8a8/int8/scaled_quant.cu (`dynamic_scaled_int8_quant_kernel`: a token's
largest magnitude / 127, to nearest, ties to even) and model_executor/layers/quantization/input_quant_fp8.py
(`QuantFP8.forward_native`: / 448, at least 1 / (448 · 512), clamped). An engine multiplies the rounded values and then
scales the sums; here the scaled values are multiplied at 16 bit, whose own rounding is a tenth of that of 8 bit.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from deployc.build.quality.stored import Rounding

E4M3 = 448.0
"""The largest of torch.float8_e4m3fn."""
LEAST = 1.0 / (E4M3 * 512.0)


def int8(values: torch.Tensor) -> torch.Tensor:
    """[…, in] as int8 holds it, in the dtype it came in."""
    wide = values.float()
    scale = wide.abs().amax(dim=-1, keepdim=True) / 127.0
    steps = torch.where(scale > 0, scale, 1.0).reciprocal_()
    return (wide * steps).round_().clamp_(-128, 127).mul_(scale).to(values.dtype)


def fp8(values: torch.Tensor) -> torch.Tensor:
    """[…, in] as float8_e4m3fn holds it, in the dtype it came in."""
    wide = values.float()
    scale = (wide.abs().amax(dim=-1, keepdim=True) / E4M3).clamp_(min=LEAST)
    stored = (wide * scale.reciprocal()).clamp_(-E4M3, E4M3).to(torch.float8_e4m3fn)
    return stored.float().mul_(scale).to(values.dtype)


def rounded(model: torch.nn.Module, modules: Iterable[str], rounding: Rounding) -> list[str]:
    """Round the inputs of these modules from now on; returns those that the model has no linear layer for."""
    change = {"int8": int8, "fp8": fp8}[rounding]

    def before(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (change(given[0]), *given[1:])

    layers = dict(model.named_modules())
    missing = []
    for name in modules:
        if isinstance(layer := layers.get(name), torch.nn.Linear):
            layer.register_forward_pre_hook(before)
        else:
            missing.append(name)
    return missing
