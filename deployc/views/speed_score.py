"""The score of the speed model as text: errors by kind of configuration and in all, another estimator's beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.units import show_count, show_seconds
from deployc.views.layout import cut, pad, paint, wrap
from deployc.views.score_parts import left_out, percent, table

_WORST = 12
"""Rows shown; --json has them all."""
_COLUMNS = {"n": 4, "mean": 8, "median": 8, "worst": 9, "bias": 9, "inside": 8, "band": 6}
"""Of the table, with their widths; "inside" is the share of figures within the band, "band" half of it."""
_BESIDE = {"n": 4, "mean": 9, "theirs": 9, "median": 9, "theirs ": 9, "worst": 9, "theirs  ": 10}


def speed_score(speed: Mapping[str, Any], *, color: bool, width: int) -> str:
    """The whole part. Relative errors in per cent of what was measured."""
    rows, groups, left = speed["rows"], speed["groups"], speed["not_scored"]
    lines = [*wrap(_said(rows), width)]
    for group in sorted(groups, key=lambda name: name == "all"):
        lines += [
            "",
            paint(group, "strong", color) + _basis(groups[group]),
            *table(groups[group], 20, _COLUMNS, _cells),
        ]
    if rows:
        lines += ["", paint("Worst runs first", "strong", color), *_worst(rows, width)]
    if speed["against"]:
        lines += ["", *_against(speed["against"], color, width)]
    if left:
        some = {row["id"] for row in rows}
        lines += ["", paint("Runs not scored", "strong", color), *left_out(left, some, width)]
    return "\n".join(lines) + "\n"


def _said(rows: Sequence[Mapping[str, Any]]) -> str:
    runs = {(row["file"], one) for row in rows for one in row.get("mean_of", [row["id"]])}
    means = [row for row in rows if "mean_of" in row and row["quantity"] == "ttft_p50"]
    text = f"{show_count(len(rows))} figures of {show_count(len(runs))} runs scored."
    if means:
        streams = sum(len(row["mean_of"]) for row in means)
        text += (
            " Of one stream a run has two or three requests, whose TTFT is noisy: it is judged by the mean over runs "
            f"of one load on engines alike, {show_count(streams)} runs in {show_count(len(means))}."
        )
    return text


def _cells(_: str, of: Mapping[str, Any]) -> list[str]:
    return [
        show_count(of["n"]), *(percent(of[key]) for key in ("mape", "median_ape", "worst")),
        percent(of["bias"], signed=True), f"{of['inside_band']:.0%}",
        "-" if of["half_width"] is None else f"±{of['half_width']:.0%}",
    ]  # fmt: skip


def _basis(quantities: Mapping[str, Mapping[str, Any]]) -> str:
    """Of the predictions: the constants were measured on this card and version, or elsewhere, or nowhere."""
    return f" ({', '.join(dict.fromkeys(basis for of in quantities.values() for basis in of['basis']))})"


def _worst(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    names = min(27, max(len(row["id"]) for row in rows) + 5)
    lines = []
    for row in rows[:_WORST]:
        head = f"  {percent(row['error'], signed=True):>9}  {pad(_named(row, names - 1), names)}"
        pair = " for ".join(_figure(row["quantity"], row[side]) for side in ("predicted", "measured"))
        lines.append(head + cut(f"{pad(row['quantity'], 20)}{pair}", width - len(head)))
    if len(rows) > _WORST:
        lines.append(f"  … {show_count(len(rows) - _WORST)} more: --json has all of them, with notes.")
    return lines


def _named(row: Mapping[str, Any], width: int) -> str:
    """The run, and how many others its mean is of."""
    others = f" +{len(row['mean_of']) - 1}" if len(row.get("mean_of", ())) > 1 else ""
    return cut(row["id"], width - len(others)) + others


def _figure(quantity: str, value: float) -> str:
    return f"{show_count(value)}/s" if quantity.endswith("per_second") else show_seconds(value)


def _against(other: Mapping[str, Any], color: bool, width: int) -> list[str]:
    """Both in all, on what both have."""
    head = cut(f"Beside {other['estimator']} ({other['file']})", width)
    if not other["runs"]:
        return [paint(head, "strong", color), "  It has none of these runs."]
    ours, theirs = (other[side]["all"] for side in ("ours", "theirs"))
    both = {name: {"ours": of, "theirs": theirs[name]} for name, of in ours.items()}
    said = f"The same figures of the {show_count(other['runs'])} runs that it has; its figures are set beside medians."
    return [paint(head, "strong", color), *wrap(said, width, first="  "), *table(both, 20, _BESIDE, _beside)]


def _beside(_: str, of: Mapping[str, Any]) -> list[str]:
    pairs = [percent(of[side][key]) for key in ("mape", "median_ape", "worst") for side in ("ours", "theirs")]
    return [show_count(of["ours"]["n"]), *pairs]
