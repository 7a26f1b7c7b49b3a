"""Between bytes of a safetensors file and torch tensors, without numpy. Runs in the build interpreter."""

from __future__ import annotations

import ctypes
import math

import torch

DTYPES = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I8": torch.int8,
    "I32": torch.int32, "I64": torch.int64, "F8_E4M3": torch.float8_e4m3fn,
}  # fmt: skip
BLOCK = 2**18
"""Elements worked on at once: 1 MiB in float32, so that a block stays in a core's own cache from step to step."""
CHUNK = 2**21
"""Elements handed to a thread at once."""


def as_float32(raw: bytearray | memoryview, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The values of `raw` in float32."""
    if not raw:
        return torch.empty(shape, dtype=torch.float32)
    return torch.frombuffer(raw, dtype=DTYPES[dtype]).reshape(shape).float()


def as_bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's own memory, which must lie in one piece; it lives as long as the view."""
    size = tensor.numel() * tensor.element_size()
    holder = (ctypes.c_ubyte * size).from_address(tensor.data_ptr())
    holder.tensor = tensor
    return memoryview(holder).cast("B")


def ranges(shape: tuple[int, ...], elements: int) -> list[tuple[int, int]]:
    """Ranges of rows of a tensor, each of about `elements` and at least one row."""
    rows = shape[0] if shape else 1
    width = math.prod(shape[1:])
    step = max(1, elements // max(width, 1))
    return [(first, min(first + step, rows)) for first in range(0, rows, step)]
