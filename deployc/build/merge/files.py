"""The tensors of an adapter's file, rows at a time in float32. Runs in the build interpreter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch

from deployc.build.weights.safetensors_file import Reader, Slot
from deployc.build.weights.tensors import as_float32
from deployc.types.facts import DTYPE_BYTES

Shape = tuple[int, ...]


class Tensors(Protocol):
    """An open file. Threads may read at once."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Every tensor's."""

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        """Rows [first, last) of a tensor, in memory of their own; a tensor without rows has one."""

    def close(self) -> None:
        """Close the file."""


def opened(path: Path, where: str) -> Tensors:
    """A safetensors file or torch's zip pickle, by its name. Raises Fault DC204, DC232; OSError."""
    return Pickle(path) if path.suffix == ".bin" else Safetensors(path, where)


def whole(tensors: Tensors, name: str) -> torch.Tensor:
    """All of a tensor, float32."""
    shape = tensors.shapes[name]
    return tensors.rows(name, 0, shape[0] if shape else 1).reshape(shape)


class Safetensors:
    """By header and `pread`."""

    def __init__(self, path: Path, where: str) -> None:
        self._reader = Reader(path, where)
        self._slots = {slot.name: slot for slot in self._reader.slots}

    @property
    def shapes(self) -> Mapping[str, Shape]:
        return {name: slot.shape for name, slot in self._slots.items()}

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        return read_rows(self._reader, self._slots[name], first, last)

    def close(self) -> None:
        self._reader.close()


class Pickle:
    """By torch, which builds tensors and nothing else of it (`weights_only`), mapped into memory."""

    def __init__(self, path: Path) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        self._tensors: dict[str, torch.Tensor] = {n: t for n, t in state.items() if isinstance(t, torch.Tensor)}

    @property
    def shapes(self) -> Mapping[str, Shape]:
        return {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        tensor = self._tensors[name]
        return (tensor[first:last] if tensor.dim() else tensor.reshape(1)).to(torch.float32, copy=True)

    def close(self) -> None:
        self._tensors.clear()


def read_rows(reader: Reader, slot: Slot, first: int, last: int) -> torch.Tensor:
    """Rows [first, last) of a tensor of a safetensors file, float32."""
    width = slot.shape[1:]
    stride = round(math.prod(width) * DTYPE_BYTES[slot.dtype])
    raw = reader.read(slot.begin + first * stride, slot.begin + last * stride)
    return as_float32(raw, slot.dtype, (last - first, *width))
