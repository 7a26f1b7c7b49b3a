"""Tensor lists as few lines: names that differ only in whole numbers between dots become one pattern, and back.

In: (name, dtype, shape) of every tensor. Out: `TensorGroup`s whose patterns hold `{0-27}` or `{0-3,5}` where the
numbers ran; `expand` gives exactly the names that went in. A brace in a tensor's own name is doubled in the pattern.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from deployc.types.facts import TensorGroup

Tensor = tuple[str, str, tuple[int, ...]]
"""Name, safetensors dtype, shape."""

_Numbers = tuple[int, ...]
_Template = tuple[str | None, ...]  # the parts between dots, None for a number
_TOKEN = re.compile(r"(\{\{|\}\}|\{[0-9][0-9,-]*\})")


def compress(tensors: Iterable[Tensor]) -> tuple[TensorGroup, ...]:
    """The fewest patterns that name exactly these tensors, sorted by pattern. Linear in the number of tensors."""
    found: dict[tuple[_Template, str, tuple[int, ...]], list[_Numbers]] = defaultdict(list)
    for name, dtype, shape in tensors:
        template, numbers = _split(name)
        found[template, dtype, shape].append(numbers)
    groups = [
        TensorGroup(_pattern(template, axes), dtype, shape, _count(axes))
        for (template, dtype, shape), rows in found.items()
        for axes in _boxes(rows)
    ]
    return tuple(sorted(groups, key=lambda g: (g.pattern, g.dtype, g.shape)))


def expand(group: TensorGroup) -> Iterator[str]:
    """Every tensor name that the group stands for. Raises ValueError where the pattern does not name `count`."""
    parts = _TOKEN.split(group.pattern)
    axes: list[list[str]] = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            axes.append([part])
        elif part in ("{{", "}}"):
            axes.append([part[0]])
        else:
            axes.append([str(n) for n in numbers(part[1:-1])])
    total = _count(axes)
    if total != group.count:
        raise ValueError(f"{group.pattern} names {total} tensors, not {group.count}")
    return ("".join(combination) for combination in product(*axes))


def _split(name: str) -> tuple[_Template, _Numbers]:
    """The name's parts between dots with None for each whole number, and those numbers."""
    parts: list[str | None] = []
    numbers: list[int] = []
    for part in name.split("."):
        if part.isdigit() and part.isascii() and (part == "0" or part[0] != "0"):
            numbers.append(int(part))
            parts.append(None)
        else:
            parts.append(part)
    return tuple(parts), tuple(numbers)


def _boxes(rows: list[_Numbers]) -> Iterator[list[list[int]]]:
    """Split index tuples into full grids (one list of numbers an axis), so that each grid is one pattern."""
    if not rows[0]:
        yield []
        return
    axes = [sorted(set(axis)) for axis in zip(*rows, strict=True)]
    if _count(axes) == len(rows):
        yield axes
        return
    rest: dict[int, list[_Numbers]] = defaultdict(list)
    for first, *others in rows:
        rest[first].append(tuple(others))
    alike: dict[tuple[_Numbers, ...], list[int]] = defaultdict(list)
    for first in sorted(rest):
        alike[tuple(sorted(rest[first]))].append(first)
    for remaining, firsts in alike.items():
        for box in _boxes(list(remaining)):
            yield [firsts, *box]


def _count(axes: Iterable[list[int]] | Iterable[list[str]]) -> int:
    total = 1
    for axis in axes:
        total *= len(axis)
    return total


def _pattern(template: _Template, axes: list[list[int]]) -> str:
    rest = iter(axes)
    return ".".join(
        run(next(rest)) if part is None else part.replace("{", "{{").replace("}", "}}") for part in template
    )


def run(numbers: Sequence[int]) -> str:
    """Ascending numbers as a pattern has them: "7" for one, else "{0-3,5}"."""
    if len(numbers) == 1:
        return str(numbers[0])
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "{" + ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs) + "}"


def numbers(text: str) -> list[int]:
    """The numbers of a run, without its braces. Raises ValueError for an absurd one."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if high - low > 1_000_000:
            raise ValueError(f"{{{text}}} is no range of tensor numbers")
        found.extend(range(low, high + 1))
    return found
