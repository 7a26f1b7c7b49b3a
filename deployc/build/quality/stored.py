"""An artifact's tensors as the 16-bit values that they stand for. Runs in the build interpreter.

Undone are the formats that a build writes (compressed-tensors' `float-quantized`, `int-quantized`, `pack-quantized`): a
scale a row or a group of inputs, with zero points or without. As compressed-tensors' `dequantize` does it, it computes
(q - zero) · s in the scale's dtype.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import torch

from deployc.build.quality import faults
from deployc.build.weights.safetensors_file import Reader, Slot, shards
from deployc.build.weights.tensors import CHUNK, DTYPES, ranges
from deployc.facts.faults import Fault
from deployc.types.scheme import packed_bits

Rounding = Literal["int8", "fp8"]
"""How an engine rounds a layer's input: token by token, by its largest magnitude."""

_INTEGERS = ("I8", "I32", "U8")


class Stored:
    """The weights in a folder, named as in the model. A context manager; raises Fault DC204, DC265."""

    def __init__(self, folder: Path) -> None:
        self.config: Mapping[str, Any] = json.loads((folder / "config.json").read_bytes())
        self.quantization: Mapping[str, Any] = self.config.get("quantization_config") or {}
        self._stack = ExitStack()
        self._slots: dict[str, tuple[Reader, Slot]] = {}
        try:
            for name in shards(folder):
                reader = self._stack.enter_context(Reader(folder / name, str(folder)))
                self._slots |= {slot.name: (reader, slot) for slot in reader.slots}
            self.quantized = frozenset(self._quantized())
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def rounding(self) -> Rounding | None:
        """How inputs of the quantized layers are rounded; None where they stay at 16 bit."""
        kinds = {_rounding(group.get("input_activations")) for group in self._groups()}
        if len(kinds) > 1:
            raise Fault(faults.not_followed("config.json rounds the inputs of some layers otherwise than of others"))
        return next(iter(kinds), None)

    def names(self) -> Iterator[str]:
        """Every tensor of the model, quantized ones by their `weight`."""
        for name in self._slots:
            module, _, parameter = name.rpartition(".")
            if module not in self.quantized:
                yield name
            elif parameter in ("weight", "weight_packed"):
                yield f"{module}.weight"
            elif parameter == "bias":
                yield name

    def elements(self) -> int:
        """Weights of the whole model, for an estimate of memory."""
        total = 0
        for name in self.names():
            module = name.removesuffix(".weight")
            packed = self._slots.get(f"{module}.weight_packed") if module in self.quantized else None
            _, slot = packed or self._slots[name]
            total += torch.Size(slot.shape).numel() * (32 // packed_bits(self.quantization) if packed else 1)
        return total

    def __contains__(self, name: str) -> bool:
        return name in self._slots or name.removesuffix(".weight") in self.quantized

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor that is stored as it is."""
        return self._slots[name][1].shape

    def tensor(self, name: str) -> torch.Tensor:
        """The values of a tensor; of a quantized one what its stored form stands for."""
        module = name.removesuffix(".weight")
        if module not in self.quantized or name == f"{module}.bias":
            return self._raw(name)
        scale = self._raw(f"{module}.weight_scale")
        if f"{module}.weight" in self._slots:
            values = self._raw(f"{module}.weight").to(scale.dtype)
            if scale.numel() not in (1, values.shape[0]):
                raise Fault(faults.not_followed(f"{module}.weight_scale is {list(scale.shape)}: neither a row nor one"))
            return values.mul_(scale.reshape(-1, 1))
        return self._unpacked(module, scale)

    def _unpacked(self, module: str, scale: torch.Tensor) -> torch.Tensor:
        words = self._raw(f"{module}.weight_packed")
        rows, columns = self._raw(f"{module}.weight_shape").tolist()
        bits = packed_bits(self.quantization)
        if 32 % bits:
            raise Fault(faults.not_followed(f"{module} is packed at {bits} bits, which run over the ends of words"))
        group = torch.arange(columns) // -(-columns // scale.shape[1])
        if f"{module}.weight_g_idx" in self._slots:
            group = self._raw(f"{module}.weight_g_idx").long()
        zero = None
        if f"{module}.weight_zero_point" in self._slots:
            packed = self._raw(f"{module}.weight_zero_point").T.contiguous()
            zero = unpacked(packed, bits, rows).T.to(scale.dtype)
        values = torch.empty(rows, columns, dtype=scale.dtype)
        for first, last in ranges((rows, columns), CHUNK):
            part = unpacked(words[first:last], bits, columns).to(scale.dtype)
            if zero is not None:
                part -= zero[first:last, group]
            torch.mul(part, scale[first:last, group], out=values[first:last])
        return values

    def _raw(self, name: str) -> torch.Tensor:
        reader, slot = self._slots[name]
        if slot.begin == slot.end:
            return torch.empty(slot.shape, dtype=DTYPES[slot.dtype])
        return torch.frombuffer(reader.read(slot.begin, slot.end), dtype=DTYPES[slot.dtype]).reshape(slot.shape)

    def _quantized(self) -> Iterator[str]:
        """Modules whose weight is stored in a form that is undone here."""
        for name, (_, slot) in self._slots.items():
            module, _, parameter = name.rpartition(".")
            if parameter in ("weight", "weight_packed") and f"{module}.weight_scale" in self._slots:
                if not (slot.dtype in ("I8", "F8_E4M3") and parameter == "weight") and slot.dtype != "I32":
                    raise Fault(faults.not_followed(f"{name} is stored as {slot.dtype}"))
                yield module
            elif slot.dtype in _INTEGERS and parameter in ("weight", "qweight", "weight_packed"):
                raise Fault(faults.not_followed(f"{name} is {slot.dtype} without a scale that is known here"))

    def _groups(self) -> list[Mapping[str, Any]]:
        return list((self.quantization.get("config_groups") or {}).values())


def unpacked(words: torch.Tensor, bits: int, columns: int) -> torch.Tensor:
    """int8 [rows, columns] of int32 words: element i at bits i·b and on of a row, lowest first, stored + 2^(b-1)."""
    per_word = 32 // bits
    shifts = torch.arange(per_word, dtype=torch.int32) * bits
    parts = (words.unsqueeze(-1) >> shifts) & (2**bits - 1)
    return (parts.reshape(words.shape[0], -1)[:, :columns] - 2 ** (bits - 1)).to(torch.int8)


def _rounding(activations: Mapping[str, Any] | None) -> Rounding | None:
    if not activations:
        return None
    kind = (activations.get("type"), activations.get("num_bits"))
    plain = activations.get("strategy") == "token" and activations.get("dynamic") is True
    if plain and activations.get("symmetric") is not False and kind in (("int", 8), ("float", 8)):
        return "int8" if kind[0] == "int" else "fp8"
    raise Fault(faults.not_followed(f"config.json rounds the inputs of layers by {json.dumps(activations)}"))
