"""The bill of one card's memory: in a sentence, as a bar and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.units import show_bytes, show_count
from deployc.views import words
from deployc.views.layout import pad, paint, wrap

PARTS = (
    ("weights", "weights", "█", "strong"),
    ("activations", "activations", "▓", "note"),
    ("cuda_graphs", "CUDA graphs", "▒", "note"),
    ("non_torch", "outside torch", "░", "note"),
    ("adapters", "adapters", "▚", "warning"),
    ("kv_cache", "KV cache", "▂", "good"),
)
"""Keys of `prediction.memory`, their names, their mark in the bar, their colour."""
FREE, BUDGET = "·", "┊"
WIDE = 74
"""Columns from which figures stand in a table."""


def sentence(document: Mapping[str, Any]) -> str:
    """Whether it fits, on what, with how much KV cache: in plain words."""
    memory, figures = document["prediction"]["memory"], document["prediction"]
    weights, budget, kept = (memory[key]["value"] for key in ("weights", "budget", "kv_cache"))
    other = f"activations, graphs and the rest {show_bytes(budget - weights - kept)}"
    bill = f"Of the {show_bytes(budget)} that the engine may take, weights take {show_bytes(weights)} and {other}"
    if kept <= 0:
        return f"{_what(document)} does not fit on {_where(document)}. {bill}: {show_bytes(-kept)} too much."
    fits = "fits" if memory["kv_cache"]["low"] > 0 else "may just fit"
    per_token = show_bytes(figures["kv_bytes_per_token"]["value"])
    tokens = f"{show_count(figures['kv_cache_tokens']['value'])} KV tokens at {per_token} each"
    return (
        f"{_what(document)} {fits} on {_where(document)}. {bill}; {show_bytes(kept)} are left: "
        f"{tokens}{_longest(document)}."
    )


def bar(memory: Mapping[str, Any], columns: int, color: bool) -> str:
    """The card from end to end: a cell for each equal share, the budget's end marked; nothing rounded up to be seen."""
    total = memory["total"]["value"]
    parts = [(max(0, memory[key]["value"]), mark, style) for key, _, mark, style in PARTS]
    scale = max(total, sum(size for size, _, _ in parts))
    cells = columns - 3  # two borders and the mark of the budget
    out, used, filled = "", 0.0, 0
    budget_at = round(memory["budget"]["value"] / scale * cells)
    for size, mark, style in [*parts, (scale, FREE, "dim")]:
        used = min(scale, used + size)
        end = round(used / scale * cells)
        before, after = max(0, min(end, budget_at) - filled), max(0, end - max(filled, budget_at))
        out += paint(mark * before, style, color)
        if filled <= budget_at <= end and BUDGET not in out:
            out += paint(BUDGET, "doubt", color)
        out += paint(mark * after, style, color)
        filled = end
    return f"│{out}│"


def bill(memory: Mapping[str, Any], columns: int, color: bool) -> list[str]:
    """One row a part; then the budget and the card."""
    rows = [(mark, style, name, memory[key]) for key, name, mark, style in PARTS]
    rows += [(BUDGET, "doubt", "budget", memory["budget"]), ("│", "dim", "the card", memory["total"])]
    return [
        line
        for mark, style, name, figure in rows
        if name != "adapters" or figure["value"]
        for line in row(f"{paint(mark, style, color)} ", name, figure, show_bytes, columns)
    ]


def row(mark: str, name: str, figure: Mapping[str, Any], show: words.Show, columns: int) -> list[str]:
    """Mark, name, value, band and basis in columns; one after the other where the line is narrow."""
    if columns < WIDE:
        head, *more = wrap(f"{name}: {words.with_band(figure, show)}", columns - 4, rest="  ")
        return [f"  {mark}{head}", *(f"    {line}" for line in more)]
    named = pad(name, 26 if mark else 28)
    cells = f"{pad(words.value(figure, show), 11)}{pad(words.band(figure, show), 21)}"
    return [f"  {mark}{named}{cells}{figure['basis']}"]


def lines(document: Mapping[str, Any], color: bool, columns: int) -> list[str]:
    """Sentence, bar and bill."""
    memory = document["prediction"]["memory"]
    return [
        *wrap(sentence(document), columns),
        "",
        paint("MEMORY of one card" if _on_gpu(document) else "MEMORY", "strong", color),
        f"  {bar(memory, columns - 2, color)}",
        *bill(memory, columns, color),
    ]


def _what(document: Mapping[str, Any]) -> str:
    model = document["model"]
    if model["weights"] == "none":
        return f"FP16 (16-bit weights, {model['dtype']})" if model["dtype"] != "float32" else "FP32"
    return "The checkpoint as it is" if model["weights"] == "checkpoint" else f"{model['weights'].upper()} (weights)"


def _where(document: Mapping[str, Any]) -> str:
    hardware, total = document["hardware"], document["prediction"]["memory"]["total"]["value"]
    if not _on_gpu(document):
        return f"this host's {show_bytes(total)}"
    size = hardware["tensor_parallel_size"]
    card = f"{words.card_class(total)} ({hardware['gpus'][0]}, {show_bytes(total)} as CUDA shows it)"
    return f"{card}" if size == 1 else f"{size} cards of {card}, each"


def _longest(document: Mapping[str, Any]) -> str:
    length = document["engine"]["args"].get("max-model-len")
    requests = document["prediction"]["max_concurrency"]["value"]
    if not isinstance(length, int) or requests is None:
        return ""
    return f", or {words.few(requests)} requests of {show_count(length)} tokens at once"


def _on_gpu(document: Mapping[str, Any]) -> bool:
    return bool(document["hardware"]["gpus"] != ["cpu"])
