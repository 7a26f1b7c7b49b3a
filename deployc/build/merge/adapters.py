"""Adapters' weights as the merge needs them, read when a tensor's turn comes. Runs in the build interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from deployc.build import faults
from deployc.build.merge import low
from deployc.build.merge.change import Added, Change, Replaced, Rows, Step, Steps, Tokens
from deployc.build.merge.files import opened, whole
from deployc.build.weights.safetensors_file import sha256
from deployc.build.weights.tensors import CHUNK, is_finite, ranges
from deployc.diagnostics import error
from deployc.facts.faults import Fault
from deployc.types.merging import Part

Shape = tuple[int, ...]
Base = Callable[[str], tuple[Rows, Shape] | None]
"""How the base's own tensor of a name is read, and its shape; None where it has none."""


class Adapter:
    """An open adapter; a context manager. `parts` say what becomes of which tensor, `borrowed` as in `Adapters`."""

    def __init__(
        self, name: str, path: Path, weight: float, parts: Sequence[Part], borrowed: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.weight = weight
        self.path = path
        self.borrowed = dict(borrowed or {})
        self.tensors = opened(path, name)
        self.parts: dict[str, list[Part]] = {}
        for part in parts:
            self.parts.setdefault(part.tensor, []).append(part)

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return self.path.stat().st_size

    def check(self, base: Base) -> str:
        """Read it once: the sha256 of the file. Raises Fault DC274 (NaN or infinity), DC239 (changes nothing)."""
        pairs = {part.of[1] for own in self.parts.values() for part in own if part.kind == "low"}
        biases = {part.of[0] for own in self.parts.values() for part in own if part.kind == "add"}
        moved = False
        for name, shape in self.tensors.shapes.items():
            for first, last in ranges(shape, CHUNK):
                values = self.tensors.rows(name, first, last)
                if values.numel() and not is_finite(values):
                    raise Fault(faults.not_finite(self.name, name))
                moved = moved or (name in pairs | biases and bool(values.any()))
        moved = moved or self._replaces(base)
        if not moved or self.weight == 0:
            why = (
                "its weight is 0." if moved else "every lora_B is zero and every tensor is the model's own: untrained."
            )
            fix = "Train it and save again, or take it out of adapters."
            raise Fault(error("DC239", "the adapter changes nothing", f"{self.name}: {why}", fix))
        return sha256(self.path)

    def shape(self, tensor: str) -> Shape | None:
        """Of a tensor that it puts in the place of the model's; None where it replaces none."""
        replaced = [part for part in self.parts.get(tensor, ()) if part.kind in ("base", "whole")]
        return self.tensors.shapes[replaced[0].of[0]] if replaced else None

    def steps(self, tensor: str, skip: bool, before: Callable[[], Iterator[torch.Tensor]]) -> list[Step]:
        """What it does to a tensor, without replacing it where `skip`; `before` gives what DoRA starts from."""
        return [
            self._step(part, before)
            for part in self.parts.get(tensor, ())
            if not (skip and part.kind in ("base", "whole"))
        ]

    def replaced(self, tensor: str) -> Replaced | None:
        """The tensor that it puts there."""
        part = next((part for part in self.parts.get(tensor, ()) if part.kind in ("base", "whole")), None)
        return None if part is None else Replaced(self._reading(part.of[0]))

    def _step(self, part: Part, before: Callable[[], Iterator[torch.Tensor]]) -> Step:
        match part.kind:
            case "low" if len(part.of) > 2:
                return low.dora(part, self.tensors, before())
            case "low":
                return low.low(part, self.tensors)
            case "add":
                return Added(whole(self.tensors, part.of[0]), part.factor)
            case "rows":
                return Tokens(part.index, whole(self.tensors, part.of[0]))
            case _:
                return Replaced(self._reading(part.of[0]))

    def _reading(self, name: str) -> Rows:
        return lambda first, last: self.tensors.rows(name, first, last)

    def _replaces(self, base: Base) -> bool:
        """Whether a tensor or row that it brings is another than the model's."""
        for tensor, own in self.parts.items():
            known = base(self.borrowed.get(tensor, tensor))
            for part in own:
                if part.kind in ("base", "whole", "rows") and (known is None or self._differs(part, *known)):
                    return True
        return False

    def _differs(self, part: Part, ours: Rows, shape: Shape) -> bool:
        name = part.of[0]
        if part.kind == "rows":
            values = whole(self.tensors, name)
            return any(
                row >= shape[0] or not torch.equal(values[at], ours(row, row + 1)[0])
                for at, row in enumerate(part.index)
            )
        if self.tensors.shapes[name] != shape:
            return True
        return any(not torch.equal(self.tensors.rows(name, a, b), ours(a, b)) for a, b in ranges(shape, CHUNK))

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, *_: object) -> None:
        self.tensors.close()


class Adapters:
    """All adapters of a merge: what they change, and how. `base` reads the model's own tensors.

    `borrowed` of an adapter: a tensor that the base lacks -> the one whose values it begins with (untied embeddings).
    """

    def __init__(self, adapters: Sequence[Adapter], base: Base) -> None:
        self._adapters, self._base = adapters, base
        self._borrowed = {name: source for adapter in adapters for name, source in adapter.borrowed.items()}

    def changed(self, base: Mapping[str, Shape]) -> dict[str, Shape]:
        """The shape, after the merge, of every tensor that they have a say in; `base` has those before it."""
        names = {name for adapter in self._adapters for name in adapter.parts} | self._borrowed.keys()
        return {name: self._shape(name, base) for name in sorted(names)}

    def of(self, name: str) -> Change:
        """The change of one tensor: pairs are read into memory, whole tensors by their rows when these come."""
        own = [adapter for adapter in self._adapters if name in adapter.parts]
        replaced = [found for adapter in own if (found := adapter.replaced(name)) is not None]
        common = replaced[0] if len(replaced) > 1 else None
        borrowed = self._borrowed.get(name)
        reads, shape = self._base(borrowed or name) or (None, ())

        def before(adapter: Adapter) -> Iterator[torch.Tensor]:
            start = adapter.replaced(name)
            rows = start.read if start is not None else reads
            if rows is None:
                raise ValueError(f"{name} is neither the base's nor an adapter's")
            for first, last in ranges(adapter.shape(name) or shape, CHUNK):
                yield rows(first, last)

        steps = [
            Steps(adapter.weight, adapter.steps(name, common is not None, lambda a=adapter: before(a)))  # type: ignore[misc]
            for adapter in own
        ]
        return Change(steps, common, reads if borrowed else None)

    def _shape(self, name: str, base: Mapping[str, Shape]) -> Shape:
        replaced = (adapter.shape(name) for adapter in self._adapters)
        own = base[name] if name in base else base[self._borrowed[name]] if name in self._borrowed else None
        found = next((shape for shape in replaced if shape is not None), own)
        if found is None:
            raise ValueError(f"{name} is neither the base's nor an adapter's")
        return found
