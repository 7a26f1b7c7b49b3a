"""A fit of the speed model as text: errors in and out of the sample, then the constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.units import show_count
from deployc.views.layout import pad, paint, wrap
from deployc.views.score_parts import left_out, percent, table

_COLUMNS = {"n": 5, "mean": 9, "worst": 9, "bias": 9, "inside": 8, "band": 6}
_TITLES = {
    "in_sample": "On the rows it was fitted on",
    "left_out_configuration": "On each configuration, fitted without it",
    "left_out_kind": "On each kind of work, fitted without it, as transferred",
}


def speed_fit(document: Mapping[str, Any], *, color: bool, width: int) -> str:
    """Relative errors in per cent of what was measured; "band" is the half-width of the predicted one."""
    head = (
        f"{show_count(document['runs'])} runs of vLLM {document['engine_version']} on {document['gpu']}. "
        "Bands are made of the residuals of the other folds."
    )
    lines = wrap(head, width)
    for name, title in _TITLES.items():
        lines += ["", paint(title, "strong", color)]
        groups, shown = document["scores"][name], {"all", *document["files"]}
        for group in sorted(groups, key=lambda key: (key in shown, key == "all")):
            if group in shown or name == "left_out_kind":
                lines += [f"  {group}", *table(groups[group], 20, _COLUMNS, _cells)]
    lines += ["", paint("Constants", "strong", color), *_constants(document["constants"])]
    if document["not_fitted"]:
        lines += ["", paint("Rows left out", "strong", color), *left_out(document["not_fitted"], (), width)]
    return "\n".join(lines) + "\n"


def _cells(_: str, of: Mapping[str, Any]) -> list[str]:
    width = "-" if of["half_width"] is None else f"±{of['half_width']:.0%}"
    return [
        str(of["n"]), percent(of["mape"]), percent(of["worst"]), percent(of["bias"], signed=True),
        f"{of['inside_band']:.0%}", width,
    ]  # fmt: skip


def _constants(constants: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Each beside what was known of it before; a fixed one says so."""
    return [f"  {pad(name, 22)}{of['value']:>11.4g}   {_prior(of)}" for name, of in sorted(constants.items())]


def _prior(of: Mapping[str, Any]) -> str:
    return f"from {of['prior']:.4g}" if of["spread"] else "fixed"
