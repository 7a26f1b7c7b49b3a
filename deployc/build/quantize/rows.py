"""Rows of a linear layer as its scheme stores them: no row depends on another. Runs in the build interpreter."""

from __future__ import annotations

import torch

from deployc.build.quantize.floats import floats
from deployc.build.quantize.integers import integers, packed
from deployc.build.quantize.scales import HALF_RANGE, scales
from deployc.types.scheme import Scheme


def stored(scheme: Scheme, module: str, values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Name of a stored tensor -> its rows, of the layer's rows [n, in] in the model's 16-bit dtype, all finite.

    Raises ValueError for a scheme that needs more than the weights to be made of.
    """
    if scheme.kind == "fp8":
        by_row = scales(values, HALF_RANGE["fp8"])
        return {f"{module}.weight": floats(values, by_row), f"{module}.{scheme.scale}": by_row}
    if scheme.kind not in ("int8", "packed") or not scheme.symmetric or scheme.act_order:
        raise ValueError(f"{module}: {scheme} is not made of weights alone")
    grouped = values.unflatten(1, (-1, scheme.group)) if scheme.group else values
    found = scales(grouped, HALF_RANGE[f"int{scheme.bits}"])
    whole = integers(grouped, found, scheme.bits).view(values.shape)
    by_group = found.squeeze(-1) if scheme.group else found
    if scheme.kind == "int8":
        return {f"{module}.weight": whole, f"{module}.{scheme.scale}": by_group}
    return {f"{module}.weight_packed": packed(whole, scheme.bits), f"{module}.weight_scale": by_group}


def constants(scheme: Scheme, module: str, shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """What is stored once a layer [out, in]."""
    if scheme.kind != "packed":
        return {}
    return {f"{module}.weight_shape": torch.tensor(shape, dtype=torch.int64)}
