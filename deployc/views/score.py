"""The score of the cost model as text: errors by group and quantity, the worst rows, what was not scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from deployc.units import show_count
from deployc.views.layout import cut, pad, paint, wrap

WORST = 20
"""Rows shown; --json has them all."""
_COLUMNS = {"n": 4, "mean": 8, "median": 8, "worst": 9, "bias": 9, "mean off": 9, "band": 5}
"""Of the table, with their widths; "mean off" is in GiB, tokens, blocks or requests, "band" the share within it."""


def score(document: Mapping[str, Any], *, color: bool, width: int) -> str:
    """The whole text. Relative errors in per cent of what was measured."""
    rows, left = document["rows"], document["not_scored"]
    count = len({(row["file"], row["id"]) for row in rows})
    lines = [f"{show_count(len(rows))} figures of {show_count(count)} starts scored."]
    for group, quantities in document["groups"].items():
        lines += ["", paint(group, "strong", color), *_table(quantities)]
    if rows:
        lines += ["", paint("Worst first", "strong", color), *_worst(rows[:WORST], width)]
        if len(rows) > WORST:
            lines.append(f"  … {show_count(len(rows) - WORST)} more: --json has all of them, with notes.")
    if left:
        lines += ["", paint("Not scored", "strong", color), *_left(document, width)]
    return "\n".join(lines) + "\n"


def _table(quantities: Mapping[str, Mapping[str, Any]]) -> list[str]:
    head = "  " + pad("", 26) + "".join(f"{name:>{size}}" for name, size in _COLUMNS.items())
    return [head, *(_line(name, of) for name, of in quantities.items())]


def _line(quantity: str, of: Mapping[str, Any]) -> str:
    off = f"{of['mae']:.2f}" if quantity.endswith("_gib") else show_count(of["mae"])
    cells = [
        str(of["n"]), *(_percent(of[key]) for key in ("mape", "median_ape", "worst")),
        _percent(of["bias"], signed=True), off, f"{of['inside_band']:.0%}",
    ]  # fmt: skip
    return (
        "  "
        + pad(quantity, 26)
        + "".join(f"{cell:>{size}}" for cell, size in zip(cells, _COLUMNS.values(), strict=True))
    )


def _percent(share: float | None, *, signed: bool = False) -> str:
    if share is None:
        return "-"
    return f"{share * 100:{'+' if signed else ''}.1f} %"


def _worst(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    names = min(20, max(len(row["id"]) for row in rows) + 2)
    return [_row(row, names, width) for row in rows]


def _row(row: Mapping[str, Any], names: int, width: int) -> str:
    shown = (f"{value:.2f}" if row["quantity"].endswith("_gib") else show_count(value) for value in _pair(row))
    head = f"  {_percent(row['error'], signed=True):>10}  {pad(cut(row['id'], names - 1), names)}"
    text = f"{pad(row['quantity'], 26)}{' for '.join(shown)}"
    return head + cut(text, width - len(head))


def _pair(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["predicted"], row["measured"]


def _left(document: Mapping[str, Any], width: int) -> list[str]:
    """One entry a reason, with the rows it holds for; a row of which some figures are scored names the others."""
    lines: list[str] = []
    some = {row["id"] for row in document["rows"]}
    left: Sequence[Mapping[str, Any]] = sorted(document["not_scored"], key=lambda one: str(one["reason"]))
    for reason, of in groupby(left, key=lambda one: str(one["reason"])):
        lines += wrap(reason, width, first="  ")
        named = (f"{one['id']} ({', '.join(one['quantities'])})" if one["id"] in some else one["id"] for one in of)
        lines += wrap(", ".join(named), width, first="    ")
    return lines
