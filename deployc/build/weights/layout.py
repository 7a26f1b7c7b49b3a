"""What becomes of each tensor of the base model, decided from headers alone: nothing is read, nothing imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deployc.build.weights.safetensors_file import Slot
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

FLOATS = ("F64", "F32", "F16", "BF16")
STORED = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
"""safetensors' name of a model dtype."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Work:
    """One tensor of the model that is served, `shape` before it is quantized.

    `source` is the base's tensor of that name, None where only an adapter has it. `dtype` is what its values are
    stored as; of a quantized one its scales. `changed`: adapters have a say in it. `scheme`: it is quantized.
    """

    name: str
    source: Slot | None
    shape: tuple[int, ...]
    dtype: str
    changed: bool
    scheme: Scheme | None

    @property
    def copied(self) -> bool:
        """Whether its bytes stay as they are."""
        return not self.changed and self.scheme is None and self.source is not None and self.dtype == self.source.dtype

    def outputs(self) -> Iterator[Tensor]:
        """The tensors that it is written as."""
        if self.scheme is None:
            yield self.name, self.dtype, self.shape
            return
        module = self.name.removesuffix(".weight")
        for parameter, dtype, shape in self.scheme.stored(*self.shape):
            yield f"{module}.{parameter}", dtype, shape


def plan(
    slots: Iterable[Slot], changed: Shapes, added: Iterable[str], quantized: Mapping[str, Scheme], dtype: str
) -> list[Work]:
    """The work on each tensor of one file, in the order they lie in it; then on those that adapters add.

    `changed` gives the shape of every tensor that adapters have a say in, `added` the names of those among them that
    the base lacks and this file is to hold. `quantized` gives the scheme of a tensor by its name, `dtype` is the
    model's ("bfloat16" …). Rotary tables of old checkpoints and what is no plain float stay as they are.
    """
    work = [
        Work(
            name=slot.name,
            source=slot,
            shape=changed.get(slot.name, slot.shape),
            dtype=STORED[dtype] if slot.dtype in FLOATS and not slot.name.endswith("inv_freq") else slot.dtype,
            changed=slot.name in changed,
            scheme=quantized.get(slot.name),
        )
        for slot in slots
    ]
    for name in added:
        work.append(Work(name, None, changed[name], STORED[dtype], True, quantized.get(name)))
    return work
