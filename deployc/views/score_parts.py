"""What the scores of both models are shown with: a table of errors, shares, and what was not scored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from deployc.views.layout import pad, wrap

Line = Mapping[str, Any]


def table(
    quantities: Mapping[str, Line],
    names: int,
    columns: Mapping[str, int],
    cells: Callable[[str, Line], Sequence[str]],
) -> list[str]:
    """A line a quantity: its name in `names` columns, then cells of these widths."""
    lines = ["  " + " " * names + "".join(f"{name.strip():>{size}}" for name, size in columns.items())]
    for name, of in quantities.items():
        sized = zip(cells(name, of), columns.values(), strict=True)
        lines.append("  " + pad(name, names) + "".join(f"{cell:>{size}}" for cell, size in sized))
    return lines


def percent(share: float | None, *, signed: bool = False) -> str:
    """ "3.1 %", "+3.1 %"; "-" where there is none."""
    return "-" if share is None else f"{share * 100:{'+' if signed else ''}.1f} %"


def left_out(left: Sequence[Line], some: Collection[str], width: int) -> list[str]:
    """One entry a reason, with the rows it holds for; a row of which `some` figures are scored names the others."""
    lines: list[str] = []
    ordered = sorted(left, key=lambda one: str(one["reason"]))
    for reason, of in groupby(ordered, key=lambda one: str(one["reason"])):
        lines += wrap(reason, width, first="  ")
        named = (f"{one['id']} ({', '.join(one['quantities'])})" if one["id"] in some else one["id"] for one in of)
        lines += wrap(", ".join(named), width, first="    ")
    return lines
