"""Between bytes of a safetensors file and torch tensors, without numpy. Runs in the build interpreter."""

from __future__ import annotations

import ctypes
import math

import torch

DTYPES = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I8": torch.int8,
    "I32": torch.int32, "I64": torch.int64, "F8_E4M3": torch.float8_e4m3fn,
}  # fmt: skip
_BITS = {
    torch.bfloat16: (torch.int16, 0x7F80), torch.float16: (torch.int16, 0x7C00),
    torch.float32: (torch.int32, 0x7F800000), torch.float64: (torch.int64, 0x7FF0000000000000),
}  # fmt: skip
"""The whole number of a dtype's width, and the bits of infinity."""
PAGE = 4096
BLOCK = 2**18
"""Elements worked on at once: 1 MiB in float32, so that a block stays in a core's own cache from step to step."""
CHUNK = 2**21
"""Elements that are looked at at once."""
HANDED = 2**23
"""Bytes of the base handed to a thread of the pass at once."""


def as_float32(raw: bytearray | memoryview, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The values of `raw` in float32, in memory of their own."""
    if not raw:
        return torch.empty(shape, dtype=torch.float32)
    return torch.frombuffer(raw, dtype=DTYPES[dtype]).reshape(shape).to(torch.float32, copy=True)


def empty(size: int, begin: int = 0) -> memoryview:
    """Memory to be filled, not zeroed before; it lies on its page as byte `begin` of a file on its own."""
    return as_bytes(laid((size,), torch.uint8, begin))


def laid(shape: tuple[int, ...], dtype: torch.dtype, begin: int) -> torch.Tensor:
    """An uninitialized tensor in memory that lies on its page as byte `begin` of a file on its own, so that it can be
    written from where it is; anywhere, where its numbers would not be aligned there."""
    size = math.prod(shape) * dtype.itemsize
    if begin % dtype.itemsize:
        return torch.empty(shape, dtype=dtype)
    memory = torch.empty(size + PAGE, dtype=torch.uint8)
    first = (begin - memory.data_ptr()) % PAGE
    return memory[first : first + size].view(dtype).view(shape)


def is_finite(values: torch.Tensor) -> bool:
    """Whether no value is infinite or NaN.

    Their sum is finite only if they all are; the bits of one that is not are those above the largest finite number.
    """
    if math.isfinite(float(values.sum(dtype=torch.float32 if values.dtype == torch.float16 else None))):
        return True
    whole, infinity = _BITS[values.dtype]
    return int((values.view(whole) & torch.iinfo(whole).max).amax()) < infinity


def as_single(value: float) -> float:
    """A factor as float32 holds it: infinite past its range, where torch would raise instead of writing infinity."""
    return float(torch.tensor(value, dtype=torch.float32))


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
