"""A LoRA adapter's weights as the merge needs them. Runs in the build interpreter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from deployc.build import faults
from deployc.build.merge.lora import Low, Pair, scale
from deployc.build.weights.safetensors_file import Reader, Slot
from deployc.build.weights.tensors import as_float32
from deployc.diagnostics import error
from deployc.facts.faults import Fault

_HALF = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")


class Adapter:
    """An open adapter; a context manager. Its pairs are read when their module's turn comes."""

    def __init__(self, name: str, path: Path, weight: float, config: Mapping[str, Any]) -> None:
        self.name = name
        self._weight, self._config = weight, config
        self._reader = Reader(path, name)
        self._halves: dict[str, dict[str, Slot]] = {}  # base tensor -> "A", "B"
        for slot in self._reader.slots:
            if match := _HALF.fullmatch(slot.name):
                self._halves.setdefault(f"{match[1]}.weight", {})[match[2]] = slot

    @property
    def merged(self) -> frozenset[str]:
        """Names of the base's tensors that it changes."""
        return frozenset(self._halves)

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return self._reader.size

    def check(self) -> str:
        """Read it once: the sha256 of the file. Raises Fault DC274 (NaN or infinity), DC239 (changes nothing)."""
        digest = hashlib.sha256(self._reader.read(0, self._reader.data))
        moved = False
        for slot in self._reader.slots:
            raw = self._reader.read(slot.begin, slot.end)
            digest.update(raw)
            values = as_float32(raw, slot.dtype, slot.shape)
            if not bool(torch.isfinite(values).all()):
                raise Fault(faults.not_finite(self.name, slot.name))
            moved = moved or (".lora_B." in slot.name and bool(values.any()))
        if not moved or self._weight == 0:
            detail = f"{self.name}: " + ("its weight is 0." if moved else "every lora_B is zero: it was never trained.")
            fix = "Train it and save again, or take it out of adapters."
            raise Fault(error("DC239", "the adapter changes nothing", detail, fix))
        return digest.hexdigest()

    def pair(self, name: str) -> Pair | None:
        """Its change of the base's tensor `name`; None where it leaves that alone."""
        if (halves := self._halves.get(name)) is None:
            return None
        factor = self._weight * scale(self._config, name.removesuffix(".weight"))
        return Pair(self._matrix(halves["A"]), self._matrix(halves["B"]), factor)

    def _matrix(self, slot: Slot) -> torch.Tensor:
        return as_float32(self._reader.read(slot.begin, slot.end), slot.dtype, slot.shape)

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()


class Adapters:
    """All adapters of a merge: what they change, and how."""

    def __init__(self, adapters: Sequence[Adapter]) -> None:
        self._adapters = adapters

    def changed(self, base: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """The shape, after the merge, of every tensor that they have a say in; `base` has those before it."""
        return {name: base[name] for adapter in self._adapters for name in sorted(adapter.merged)}

    def of(self, name: str) -> Low:
        """The change of one tensor, read into memory."""
        return Low([pair for adapter in self._adapters if (pair := adapter.pair(name)) is not None])
