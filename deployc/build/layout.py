"""What becomes of each tensor of the base model, decided from headers alone: nothing is read, nothing imported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from deployc.build.safetensors_file import Slot
from deployc.types.groups import Tensor

FLOATS = ("F64", "F32", "F16", "BF16")
STORED = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
"""safetensors' name of a model dtype."""


@dataclass(frozen=True, slots=True)
class Work:
    """One tensor: `dtype` is what its values are stored as (int8 layers: the dtype of their scales)."""

    source: Slot
    dtype: str
    merge: bool
    quantize: bool

    @property
    def copied(self) -> bool:
        """Whether its bytes stay as they are."""
        return not self.merge and not self.quantize and self.dtype == self.source.dtype

    def outputs(self) -> Iterator[Tensor]:
        """The tensors that it is written as."""
        name, shape = self.source.name, self.source.shape
        if self.quantize:
            yield name, "I8", shape
            yield f"{name}_scale", self.dtype, (shape[0], 1)
        else:
            yield name, self.dtype, shape


def plan(slots: Iterable[Slot], merged: Collection[str], quantized: Collection[str], dtype: str) -> list[Work]:
    """The work on each tensor, in the order they lie in the file.

    `merged` and `quantized` are names of the base's tensors, `dtype` the model's ("bfloat16" …). Rotary tables of old
    checkpoints and what is no plain float stay as they are.
    """
    return [
        Work(
            source=slot,
            dtype=STORED[dtype] if slot.dtype in FLOATS and not slot.name.endswith("inv_freq") else slot.dtype,
            merge=slot.name in merged,
            quantize=slot.name in quantized,
        )
        for slot in slots
    ]
