"""The score of the cost model as text: errors by group and quantity, the worst rows, what was not scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.units import show_count
from deployc.views.layout import cut, pad, paint
from deployc.views.score_parts import left_out, percent, table
from deployc.views.speed_score import speed_score

WORST = 20
"""Rows shown; --json has them all."""
_COLUMNS = {"n": 4, "mean": 8, "median": 8, "worst": 9, "bias": 9, "mean off": 9, "band": 5}
"""Of the table, with their widths; "mean off" is in GiB, tokens, blocks or requests, "band" the share within it."""


def score(document: Mapping[str, Any], *, color: bool, width: int) -> str:
    """The whole text: memory, then speed, of whichever there are rows."""
    speed = document["speed"]
    parts = [_memory(document, color, width)] if document["rows"] or document["not_scored"] else []
    if speed["rows"] or speed["not_scored"] or speed["against"]:
        parts.append(speed_score(speed, color=color, width=width))
    return "\n".join(parts)


def _memory(document: Mapping[str, Any], color: bool, width: int) -> str:
    """Relative errors in per cent of what was measured."""
    rows, left = document["rows"], document["not_scored"]
    count = len({(row["file"], row["id"]) for row in rows})
    lines = [f"{show_count(len(rows))} figures of {show_count(count)} starts scored."]
    for group, quantities in document["groups"].items():
        lines += ["", paint(group, "strong", color), *table(quantities, 26, _COLUMNS, _cells)]
    if rows:
        lines += ["", paint("Worst first", "strong", color), *_worst(rows[:WORST], width)]
        if len(rows) > WORST:
            lines.append(f"  … {show_count(len(rows) - WORST)} more: --json has all of them, with notes.")
    if left:
        some = {row["id"] for row in rows}
        lines += ["", paint("Not scored", "strong", color), *left_out(left, some, width)]
    return "\n".join(lines) + "\n"


def _cells(quantity: str, of: Mapping[str, Any]) -> list[str]:
    off = f"{of['mae']:.2f}" if quantity.endswith("_gib") else show_count(of["mae"])
    return [
        str(of["n"]), *(percent(of[key]) for key in ("mape", "median_ape", "worst")),
        percent(of["bias"], signed=True), off, f"{of['inside_band']:.0%}",
    ]  # fmt: skip


def _worst(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    names = min(20, max(len(row["id"]) for row in rows) + 2)
    return [_row(row, names, width) for row in rows]


def _row(row: Mapping[str, Any], names: int, width: int) -> str:
    shown = (f"{value:.2f}" if row["quantity"].endswith("_gib") else show_count(value) for value in _pair(row))
    head = f"  {percent(row['error'], signed=True):>10}  {pad(cut(row['id'], names - 1), names)}"
    text = f"{pad(row['quantity'], 26)}{' for '.join(shown)}"
    return head + cut(text, width - len(head))


def _pair(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["predicted"], row["measured"]
