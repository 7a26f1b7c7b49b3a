"""Rows of a linear layer as its scheme stores them. Runs in the build interpreter."""

from __future__ import annotations

import torch

from deployc.build.quantize import int8
from deployc.types.scheme import Scheme


def stored(scheme: Scheme, module: str, values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Name of a stored tensor -> its rows, of the layer's rows [n, in] in the model's 16-bit dtype."""
    scales = int8.row_scales(values)
    return {f"{module}.weight": int8.quantized(values, scales), f"{module}.{scheme.scale}": scales}


def constants(scheme: Scheme, module: str, shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """What is stored once a layer [out, in]."""
    if scheme.kind != "packed":
        return {}
    return {f"{module}.weight_shape": torch.tensor(shape, dtype=torch.int64)}
