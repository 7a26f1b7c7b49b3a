"""LoRA on bare parameters: experts that transformers 5 holds in one tensor [experts, out, in], wherever they lie.

A checkpoint has them stacked like that, [experts, in, out] where the class says so (gpt-oss), or one by one, which
transformers joins when it loads them: gate above up (transformers 5.24.0, conversion_mapping.py: qwen2_moe, mixtral).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from deployc.rules.adapter_shapes.names import is_end, place
from deployc.types.merging import Part

Shape = tuple[int, ...]

ORDER = ("gate_up_proj", "down_proj")
"""As the classes define them: of two that are changed, peft wraps the first innermost."""
_ONE_BY_ONE = {
    "gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3")),
    "down_proj": (("down_proj",), ("w2",)),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A parameter and its tensors in the checkpoint: `stacked`, or for every expert those that are joined."""

    parameter: str
    experts: int
    stacked: str | None
    joined: Sequence[tuple[str, ...]]


def target(listed: Iterable[str], module: str, depth: int, base: Mapping[str, Shape]) -> Target | str:
    """What a pair under `depth` wraps changes; else why that is not known, "" where the model has no such module."""
    wrapped = [name for name in ORDER if any(_names(entry, module, name) for entry in listed)]
    if depth >= len(wrapped):
        known = ", ".join(ORDER)
        return f"`target_parameters` names none of {known} for it" if module.endswith("experts") else ""
    parameter = wrapped[len(wrapped) - 1 - depth]
    if (stacked := place(f"{module}.{parameter}", base)) is not None:
        return Target(parameter, base[stacked][0], stacked, ()) if len(base[stacked]) == 3 else f"{stacked} is not 3-D"
    for names in _ONE_BY_ONE[parameter]:
        if joined := _one_by_one(module, names, base):
            return Target(parameter, len(joined), None, joined)
    return ""


def parts(
    of: Target, pair: tuple[str, str], into: Shape, out: Shape, factor: float, base: Mapping[str, Shape]
) -> list[Part] | str:
    """The parts of a pair A [experts · r, in], B [out, r · experts]; else how the shapes differ."""
    if of.stacked is not None:
        shape, other = base[of.stacked], base.get(_sibling(of.stacked))
        plain, over = shape[1:] == (out[0], into[1]), shape[1:] == (into[1], out[0])
        if plain and over:
            plain = other is None or _lies_plain(other, of.parameter, into[1])
        if not plain and not over:
            return f"takes {list(shape)}, the adapter gives {[of.experts, out[0], into[1]]}"
        return [Part(of.stacked, "low", pair, factor, not plain, of.experts)]
    found = []
    for expert, tensors in enumerate(of.joined):
        first = 0
        for tensor in tensors:
            rows, columns = base[tensor]
            found.append(Part(tensor, "low", pair, factor, False, of.experts, expert, (first, first + rows)))
            if columns != into[1]:
                return f"{tensor} takes [{rows}, {columns}], the adapter gives [{out[0]}, {into[1]}]"
            first += rows
        if first != out[0]:
            return f"{' and '.join(tensors)} take {first} outputs, the adapter gives {out[0]}"
    return found


def _names(entry: str, module: str, parameter: str) -> bool:
    """Whether an entry of `target_parameters` is a module's parameter, or the end of its name."""
    where, _, name = entry.rpartition(".")
    return name == parameter and (not where or is_end(where, module))


def _one_by_one(module: str, names: Sequence[str], base: Container[str]) -> list[tuple[str, ...]]:
    """For every expert its tensors; empty where the first has none."""
    found: list[tuple[str, ...]] = []
    for expert in count():
        placed = [place(f"{module}.{expert}.{name}.weight", base) for name in names]
        if not all(placed):
            return found
        found.append(tuple(name for name in placed if name))
    return found


def _sibling(stacked: str) -> str:
    one, other = ORDER
    module, _, parameter = stacked.rpartition(".")
    return f"{module}.{other if parameter == one else one}"


def _lies_plain(other: Shape, parameter: str, width: int) -> bool:
    """Of a square parameter, by the other one: gate and up take `width` inputs, down gives as many outputs."""
    return other[1] == width if parameter == "gate_up_proj" else other[2] == width
