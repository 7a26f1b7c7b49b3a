"""A diagnosis for people: what is expected, what contradicts itself, causes by what they give back, what is next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.diagnostics import Report
from deployc.units import show_bytes, show_count
from deployc.views.diagnostics import diagnostics
from deployc.views.layout import escape, paint, wrap


def doctor(document: Mapping[str, Any], report: Report, *, color: bool = False, width: int = 80) -> str:
    """All of it."""
    found = diagnostics(report, color=color, width=width).rstrip("\n")
    parts = [_expected(document["predicted"], color, width), found.split("\n") if found else []]
    parts += [_causes(document, color, width), _list("Not seen", document["not_seen"], color, width)]
    parts.append(_list("Look at next", document["next"], color, width))
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _expected(predicted: Mapping[str, Any], color: bool, width: int) -> list[str]:
    memory, stream = predicted["memory"], predicted["single_stream"]
    fits = (
        f"{show_bytes(memory['weights']['value'])} of weights in a budget of {show_bytes(memory['budget']['value'])} "
        "leave "
        f"{show_bytes(memory['kv_cache']['value'])}, {show_count(predicted['kv_cache_tokens']['value'])} KV tokens"
        if predicted["fits"]
        else f"{show_bytes(memory['weights']['value'])} of weights do not fit into a budget of "
        f"{show_bytes(memory['budget']['value'])}"
    )
    lines = [
        f"Memory: {fits}.",
        f"One stream: {_band(stream)} tokens/s ({stream['basis']}); the bandwidth allows "
        f"{predicted['physical_limit']['value']:.3g}.",
    ]
    if not predicted["alone"]:
        tokens, requests = predicted["tokens_per_second"], predicted["requests_per_second"]
        lines.append(f"The load described: {_band(tokens)} tokens/s, {_band(requests)} requests/s.")
    return [paint("Expected of a healthy vLLM", "strong", color), *_wrapped(lines, width)]


def _causes(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    lines = [paint("Causes, those that are stated first, then by what each would give back", "strong", color)]
    for number, cause in enumerate(document["causes"], 1):
        gain, sure = cause["gain"], "" if cause["stated"] else " perhaps:"
        back = f" [+{_band(gain)} {gain['unit']}]" if gain else ""
        lines += wrap(f"{number}.{sure} {cause['summary']} ({cause['code']}){back}", width, "  ", "     ")
        lines += wrap(cause["evidence"], width, "     ", "     ")
        lines += wrap(f"fix: {cause['fix']}", width, "     ", "     ")
    return lines if document["causes"] else [paint("No cause was found in what is described.", "strong", color)]


def _list(title: str, items: list[str], color: bool, width: int) -> list[str]:
    return [paint(title, "strong", color), *_wrapped([escape(item) for item in items], width)] if items else []


def _wrapped(lines: list[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(line, width, "  ", "    ")]


def _band(figure: Mapping[str, Any]) -> str:
    value, low, high = (figure[end] for end in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "unbounded" if value is None else f"{value:.3g}"
    shown = [_rounded(end) for end in (value, low, high)]
    return shown[0] if shown[1] == shown[2] else f"{shown[0]} ({shown[1]} to {shown[2]})"


def _rounded(number: float) -> str:
    """Three significant figures, thousands apart."""
    return f"{number:.3g}" if number < 1000 else show_count(float(f"{number:.3g}"))
