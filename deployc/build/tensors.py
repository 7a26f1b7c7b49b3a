"""Between bytes of a safetensors file and torch tensors, without numpy. Runs in the build interpreter."""

from __future__ import annotations

import math

import torch

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I8": torch.int8}
BLOCK = 2**24
"""Elements of a weight worked on at once (64 MiB in float32): memory does not grow with the tensor."""


def as_float32(raw: bytearray, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The values of `raw` in float32."""
    if not raw:
        return torch.empty(shape, dtype=torch.float32)
    return torch.frombuffer(raw, dtype=DTYPES[dtype]).reshape(shape).float()


def as_bytes(tensor: torch.Tensor, dtype: str) -> bytearray:
    """The values stored as `dtype`, rounded to nearest, ties to even."""
    kind = DTYPES[dtype]
    raw = bytearray(tensor.numel() * kind.itemsize)
    if raw:
        torch.frombuffer(raw, dtype=kind).copy_(tensor.reshape(-1))
    return raw


def blocks(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Ranges of rows of a tensor, each of about BLOCK elements and at least one row."""
    rows = shape[0] if shape else 1
    width = math.prod(shape[1:])
    step = max(1, BLOCK // max(width, 1))
    return [(first, min(first + step, rows)) for first in range(0, rows, step)]
