"""The result of `deployc tune` for people: what to run and why, what more money or patience would buy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from deployc.diagnostics import Report
from deployc.units import show_count, show_seconds
from deployc.views import words
from deployc.views.diagnostics import diagnostics
from deployc.views.layout import escape, pad, paint, wrap
from deployc.views.text import VERDICTS

NAMES = {
    "hardware.gpu": "cards",
    "hardware.count": "how many",
    "weights": "weights",
    "kv_cache": "KV cache",
    "tensor": "cards an engine",
    "replicas": "engines",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
}
SHOWN = ("ttft_p95", "tpot_p95", "e2e_p95", "requests_per_second", "tokens_per_second")
AT_LEAST = ("requests_per_second", "tokens_per_second", "full_length_requests")
WHOLE = ("none", "checkpoint")
"""Weights from which nothing is taken."""
WIDE = 76
"""Columns from which the front is a table."""


def tune(
    document: Mapping[str, Any], report: Report, *, color: bool = False, width: int = 80, file: str = "deploy.yaml"
) -> str:
    """All of it. `file` is the deploy.yaml as the user named it, for the next command."""
    parts = [_head(document, color, width), *_body(document, color, width)]
    found = diagnostics(report, color=color, width=width)
    parts += [found.rstrip("\n").split("\n") if found else [], _next(document, color, width, file)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    counts = document["counts"]
    name = f"{escape(document['name'])}: {_looked_at(document)}"
    how = {"simulated": "were simulated", "bounded": "excluded by arithmetic", "not_starting": "do not surely start",
           "left": "were left"}  # fmt: skip
    said = ", ".join(f"{show_count(counts[key])} {did}" for key, did in how.items() if counts[key])
    return [*(paint(line, "strong", color) for line in wrap(name, width)), *wrap(f"{said}.", width, "  ")]


def _looked_at(document: Mapping[str, Any]) -> str:
    count = words.counted(document["counts"]["candidates"], "configuration")
    return f"{count} for {words.load(document['workload'])}"


def _body(document: Mapping[str, Any], color: bool, width: int) -> list[list[str]]:
    chosen, nearest = document["chosen"], document["nearest"]
    if chosen:
        heading = f"CHOSEN: {_cheapest(document)} that {_what_it_does(document)}"
        parts = [[*_heading(heading, color, width), *_settings(chosen, color, width)], _speed(chosen, color, width)]
    elif nearest:
        heading = "NEAREST: none meets the SLA; this one comes nearest"
        parts = [[*_heading(heading, color, width), *wrap(_line(nearest), width, "  ")], _speed(nearest, color, width)]
    else:
        parts = []
    return [*parts, _front(document, color, width)]


def _heading(text: str, color: bool, width: int) -> list[str]:
    return [paint(line, "strong", color) for line in wrap(text, width)]


def _cheapest(document: Mapping[str, Any]) -> str:
    if document["cost_unit"] == "cards":
        return f"the fewest cards, {document['chosen']['cost']:.0f},"
    return f"the least money, {document['chosen']['cost']:g} an hour,"


def _what_it_does(document: Mapping[str, Any]) -> str:
    if not document["chosen"]["sla"]:
        return "hold the model (no limit is stated under sla)"
    sure = "with all of the band" if document["limits_hold_for"] == "band" else "by the predicted values alone"
    return f"meet the SLA {sure}" if document["cost_unit"] == "cards" else f"meets the SLA {sure}"


def _settings(chosen: Mapping[str, Any], color: bool, width: int) -> list[str]:
    """Changes are marked; what stays says why too."""
    lines = []
    for setting in chosen["settings"]:
        changed = setting["value"] != setting["before"]
        now = f" (now {_shown(setting['before'])})" if changed else ""
        why = f": {setting['reason']}" if setting["reason"] else ""
        text = f"{_shown(setting['value'])}{now}{why} [{setting['because']}]"
        name = pad(NAMES[setting["name"]], 23) if width >= WIDE else f"{NAMES[setting['name']]}: "
        first, *more = wrap(text, width, f"  {'~' if changed else ' '} {name}", " " * (28 if width >= WIDE else 6))
        lines += [paint(first, "good", color) if changed else first, *more]
    return lines


def _shown(value: str | int) -> str:
    return show_count(value) if isinstance(value, int) else escape(value)


def _speed(run: Mapping[str, Any], color: bool, width: int) -> list[str]:
    """What users would see, each beside its limit where there is one."""
    lines = [paint("PREDICTED", "strong", color)]
    limits = {line["name"]: line for line in run["sla"]}
    for key in dict.fromkeys((*SHOWN, *limits)):
        name, show = words.FIGURES[key]
        line = limits.get(key)
        figure = line["predicted"] if line else run["speed"][key]
        text = f"{name}: {words.with_band(figure, show)}"
        verdict, style = "", "dim"
        if line is not None:
            verdict, style = VERDICTS[line["verdict"]]
            bound = "at least" if key in AT_LEAST else "at most"
            text += f", {bound} {show(line['limit'])} {line['at']}"
        first, *more = wrap(text, width - 12)
        lines += [f"  {paint(pad(verdict, 10), style, color)}{first}", *(f"            {rest}" for rest in more)]
    legend = words.bases([run["speed"][key] for key in SHOWN], run["transferred_from"])
    return [*lines, *wrap(f"({legend})", width, "  ")]


def _front(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    runs = document["front"]
    if not runs:
        return []
    unit = "each card" if document["cost_unit"] == "cards" else "the money"
    limits = "; all keep every limit but that on the time per token" if any(run["sla"] for run in runs) else ""
    about = (
        f"No other configuration has both more output tokens/s for {unit} and a shorter time per token{limits}. "
        "Differences under 5 % count as none."
    )
    if any(run["configuration"]["weights"] not in WHOLE or run["configuration"]["kv_cache"] != "auto" for run in runs):
        about += " Fewer bits in weights or cache may cost quality, which is not predicted."
    lines = [paint("FRONT", "strong", color), *wrap(about, width, "  ")]
    if width < WIDE:
        return [*lines, *(row for run in runs for row in wrap(_line(run), width, "  - ", "    "))]
    return [*lines, *_table(runs, document, color)]


def _table(runs: Sequence[Mapping[str, Any]], document: Mapping[str, Any], color: bool) -> list[str]:
    each = "/s/card" if document["cost_unit"] == "cards" else "/s/money"
    titles = ("", "cards", "weights", "KV", "TP x n", "seqs", "batch", f"tok{each}", "tpot p95", "ttft p95")
    rows = [titles, *(_cells(run, document) for run in runs)]
    sizes = [max(len(row[column]) for row in rows) for column in range(len(titles))]
    lines = ["  " + " ".join(pad(cell, size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in rows]
    return [paint(lines[0], "dim", color), *lines[1:]]


def _cells(run: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, ...]:
    of, speed = run["configuration"], run["speed"]
    chosen = document["chosen"]
    mark = "*" if chosen and all(run[key] == chosen[key] for key in ("gpu", "count", "configuration")) else ""
    return (
        mark, f"{run['count']} x {run['gpu']}", str(of["weights"]), str(of["kv_cache"]),
        f"{of['tensor']} x {of['replicas']}", str(of["max_num_seqs"]), str(of["max_num_batched_tokens"]),
        words.value(run["tokens_per_second_for_cost"], lambda rate: show_count(float(f"{rate:.3g}"))),
        words.value(speed["tpot_p95"], show_seconds), words.value(speed["ttft_p95"], show_seconds),
    )  # fmt: skip


def _line(run: Mapping[str, Any]) -> str:
    """One configuration in a sentence."""
    of, speed = run["configuration"], run["speed"]
    engines = words.counted(of["replicas"], "engine")
    return (
        f"{run['count']} x {escape(run['gpu'])}, weights {of['weights']}, KV cache {of['kv_cache']}, {engines} of "
        f"{words.counted(of['tensor'], 'card')}, max_num_seqs {of['max_num_seqs']}, max_num_batched_tokens "
        f"{of['max_num_batched_tokens']}: {words.value(speed['tokens_per_second'], words.rate('tokens'))}, "
        f"{words.value(speed['tpot_p95'], show_seconds)} a token, first after "
        f"{words.value(speed['ttft_p95'], show_seconds)}"
    )


def _next(document: Mapping[str, Any], color: bool, width: int, file: str) -> list[str]:
    if not document["chosen"]:
        return []
    named = "" if file == "deploy.yaml" else f" -f {shlex.quote(escape(file))}"
    moved = any(change["key"].startswith("hardware.") for change in document["changes"])
    after = f"`deployc lock{named}`, then `deployc plan{named}`" if moved else f"`deployc plan{named}`"
    if not document["changes"]:
        text = "Nothing to change: the file says so already."
    elif document["written"]:
        text = f"Written: {', '.join(change['key'] for change in document['changes'])}. Next: {after}"
    else:
        text = f"Next: `deployc tune{named} --write`, with the same options, puts it into the file; {after}"
    return [paint(line, "strong", color) for line in wrap(text, width)]
