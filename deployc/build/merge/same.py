"""Whether tensors of adapters hold the same values: bytes of files, no library."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from deployc.facts.adapter.pickled import Placed
from deployc.types.merging import Part

STEP = 2**24
_FORMATS = {"F64": "Q", "F32": "I", "F16": "H", "BF16": "H"}

Places = Mapping[str, Placed]


def compare(files: Sequence[tuple[Path, Places]], i: int, one: Part, j: int, other: Part) -> bool:
    """Whether a part of adapter i and one of adapter j do the same, by all tensors that they name.

    A pair on an input embedding, A [r, vocabulary] and B [width, r], is the output's B and A turned over.
    """
    if len(one.of) != len(other.of):
        return False
    names = other.of
    turned = one.kind == "low" and one.transposed != other.transposed
    if turned:
        names = (other.of[1], other.of[0])
        if len(one.of) > 2:
            return False
    return all(
        _same(files[i], a, files[j], b, turned and one.kind == "low") for a, b in zip(one.of, names, strict=True)
    )


def _same(left: tuple[Path, Places], a: str, right: tuple[Path, Places], b: str, turned: bool) -> bool:
    one, other = left[1][a], right[1][b]
    if one.dtype != other.dtype or (one.shape[::-1] if turned else one.shape) != other.shape:
        return False
    if turned:
        return _turned(left[0], one, right[0], other)
    with left[0].open("rb") as x, right[0].open("rb") as y:
        x.seek(one.begin)
        y.seek(other.begin)
        size = one.end - one.begin
        return all(
            x.read(min(STEP, size - at)) == y.read(min(STEP, size - at)) for at in range(0, size, STEP)
        )  # fmt: skip


def _turned(path: Path, one: Placed, path2: Path, other: Placed) -> bool:
    if one.dtype not in _FORMATS:
        return False
    x, y = (_elements(p, place) for p, place in ((path, one), (path2, other)))
    rows, columns = one.shape
    return all(x[row * columns : (row + 1) * columns] == y[row::rows] for row in range(rows))


def _elements(path: Path, place: Placed) -> tuple[int, ...]:
    with path.open("rb") as file:
        file.seek(place.begin)
        raw = file.read(place.end - place.begin)
    code = _FORMATS[place.dtype]
    return struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)
