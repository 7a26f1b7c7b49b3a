"""The bill of one card's memory: in a sentence, as a bar and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
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
    memory = document["prediction"]["memory"]
    weights, budget, kept = (memory[key]["value"] for key in ("weights", "budget", "kv_cache"))
    if not _on_gpu(document):
        return _on_host(document)
    each = " of each" if document["hardware"]["tensor_parallel_size"] > 1 else ""
    other = f"what else it needs {show_bytes(budget - weights - kept)}"
    bill = f"Of the {show_bytes(budget)} that the engine may take{each}, weights take {show_bytes(weights)} and {other}"
    if kept <= 0:
        fits = "probably does not fit" if starts(document) else "does not fit"
        return f"{_what(document)} {fits} {_where(document)}. {bill}: {show_bytes(-kept)} too much."
    fits = "fits" if memory["kv_cache"]["low"] > 0 else "may just fit"
    head = f"{_what(document)} {fits} {_where(document)}{_but(document)}."
    return f"{head} {bill}; {show_bytes(kept)} are left: {_tokens(document)}."


def _but(document: Mapping[str, Any]) -> str:
    """Weights that fit are not all: what the engine asks for must be free, and a request of full length have room."""
    for found in document.get("diagnostics", ()):
        if found["code"] == "DC303" and found["severity"] in ("error", "warning"):
            return f", but {'too little' if found['severity'] == 'error' else 'perhaps too little'} of it is free"
    length = document["engine"]["args"].get("max-model-len")
    requests = document["prediction"]["max_concurrency"]
    if not isinstance(length, int) or requests["value"] is None or requests["low"] >= 1:
        return ""
    fits = "does not" if requests["high"] < 1 else "may not"
    return f", but a request of {show_count(length)} tokens {fits}"


def starts(document: Mapping[str, Any]) -> bool:
    """Whether the engine may start at all: only then are there speeds to show."""
    return bool(document["prediction"]["memory"]["kv_cache"]["high"] > 0)


def _on_host(document: Mapping[str, Any]) -> str:
    """The CPU engine: its KV pool has a size of its own, the rest of the host stays free."""
    memory = document["prediction"]["memory"]
    taken = sum(memory[key]["value"] for key in ("weights", "activations", "non_torch", "adapters"))
    total, pool = memory["total"]["value"], memory["kv_cache"]["value"]
    fits = "fits" if taken + pool <= total else "does not fit"
    return (
        f"{_what(document)} {fits} {_where(document)}: the process takes some {show_bytes(taken)}, weights included, "
        f"and the KV pool {show_bytes(pool)}: {_tokens(document)}."
    )


def _tokens(document: Mapping[str, Any]) -> str:
    figures = document["prediction"]
    cards, bytes_of = document["hardware"]["tensor_parallel_size"], figures["kv_bytes_per_token"]["value"]
    per_token = f"{show_bytes(bytes_of / cards)} {'each' if cards == 1 else 'a card'}"
    explained = figures.get("explain")
    if explained and not explained["tokens_are_capacity"]:
        return f"room for {_longest(document)}"
    some, link = _longest(document), "" if figures["max_concurrency"]["value"] < 1 else "or "
    tokens = f"{show_count(figures['kv_cache_tokens']['value'])} KV tokens at {per_token}"
    return f"{tokens}, {link}{some}" if some else tokens


def bar(memory: Mapping[str, Any], columns: int, color: bool) -> str:
    """The card from end to end, a cell for each equal share, the budget's end marked. Nothing is rounded up to be seen;
    what does not fit reaches past the budget, and past the card's end the scale shrinks."""
    parts = [(max(0, memory[key]["value"]), mark, style) for key, _, mark, style in _in_order(memory)]
    scale = max(memory["total"]["value"], sum(size for size, _, _ in parts))
    count = columns - 3  # two borders and the budget's mark
    cells: list[tuple[str, str]] = []
    used = 0.0
    for size, mark, style in parts:
        used += size
        cells += [(mark, style)] * (round(used / scale * count) - len(cells))
    cells += [(FREE, "dim")] * (count - len(cells))
    cells.insert(round(memory["budget"]["value"] / scale * count), (BUDGET, "doubt"))
    runs = ((mark, style, len(list(run))) for (mark, style), run in groupby(cells))
    return "│" + "".join(paint(mark * length, style, color) for mark, style, length in runs) + "│"


def _in_order(memory: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The parts from left to right; CUDA graphs last and named so where the engine leaves them out of its budget."""
    inside = sum(memory[key]["value"] for key, *_ in PARTS if key != "cuda_graphs")
    if inside + memory["cuda_graphs"]["value"] / 2 <= memory["budget"]["value"]:
        return list(PARTS)
    graphs = next(part for part in PARTS if part[0] == "cuda_graphs")
    return [*(part for part in PARTS if part is not graphs), ("cuda_graphs", "graphs, outside it", *graphs[2:])]


def bill(memory: Mapping[str, Any], columns: int, color: bool) -> list[str]:
    """One row for each part that takes anything; then the budget and all of the card."""
    rows = [(mark, style, *_missing(name, memory[key])) for key, name, mark, style in _in_order(memory)]
    rows += [(BUDGET, "doubt", "budget", memory["budget"]), ("│", "dim", "all of it", memory["total"])]
    return [
        line
        for mark, style, name, figure in rows
        if figure["value"]
        for line in row(f"{paint(mark, style, color)} ", name, figure, show_bytes, columns)
    ]


def _missing(name: str, figure: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """What there is too little of, by how much: a negative size is none."""
    if figure["value"] >= 0:
        return name, figure
    turned = {"value": -figure["value"], "low": -figure["high"], "high": -figure["low"], "basis": figure["basis"]}
    return f"missing for {name}", turned


def row(mark: str, name: str, figure: Mapping[str, Any], show: words.Show, columns: int) -> list[str]:
    """Mark, name, value, band and basis in columns; one after the other where the line is narrow."""
    if columns < WIDE:
        head, *more = wrap(f"{name}: {words.with_band(figure, show)}", columns - 4, rest="  ")
        return [f"  {mark}{head}", *(f"    {line}" for line in more)]
    named = pad(name, 26 if mark else 28)
    cells = f"{pad(words.value(figure, show), 11)}{pad(words.band(figure, show), 20)} "
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
    return (
        "The checkpoint as it is"
        if model["weights"] == "checkpoint"
        else f"{model['weights'].upper()} (quantized weights)"
    )


def _where(document: Mapping[str, Any]) -> str:
    hardware, total = document["hardware"], document["prediction"]["memory"]["total"]["value"]
    if not _on_gpu(document):
        return f"in this host's {show_bytes(total)}"
    size = hardware["tensor_parallel_size"]
    kinds = list(dict.fromkeys(hardware["gpus"]))
    named = kinds[0] if len(kinds) == 1 else f"the smallest of {', '.join(kinds)}"
    own = kinds == ["custom"]  # or a slice: sold in no size
    sold, shown = (
        (show_bytes(total), "") if own else (words.card_class(total), f", {show_bytes(total)} as CUDA shows it")
    )
    return f"on {f'{size} cards of {sold} each' if size > 1 else sold} ({named}{shown})"


def _longest(document: Mapping[str, Any]) -> str:
    length = document["engine"]["args"].get("max-model-len")
    requests = document["prediction"]["max_concurrency"]["value"]
    if not isinstance(length, int) or requests is None:
        return ""
    if requests < 1:
        return f"less than one request of {show_count(length)} tokens"
    return f"{words.requests(requests)} of {show_count(length)} tokens at once"


def _on_gpu(document: Mapping[str, Any]) -> bool:
    return bool(document["hardware"]["gpus"] != ["cpu"])
