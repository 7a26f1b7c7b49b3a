"""The plan for people: what it is, whether it fits, how fast, what would be done, what is wrong."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from deployc.diagnostics import Report
from deployc.units import show_count, show_seconds
from deployc.views import explain, memory, quality, words
from deployc.views.diagnostics import diagnostics
from deployc.views.layout import escape, pad, paint, wrap

MARKS = {"build": "+", "create": "+", "replace": "~", "update": "~", "delete": "-", "keep": "=", "verify": "?"}
MARK_STYLES = {"+": "good", "~": "doubt", "-": "bad", "=": "dim", "?": "note"}
LATENCIES = ("ttft_p95", "tpot_p95", "e2e_p95")
AT_LEAST = ("requests_per_second", "tokens_per_second", "full_length_requests")
VERDICTS = {"meets": ("✓ meets", "good"), "tight": ("~ tight", "doubt"), "misses": ("✗ misses", "bad")}


def plan(
    document: Mapping[str, Any], report: Report, *, color: bool = False, width: int = 80, file: str = "deploy.yaml",
    applies: bool = True,
) -> str:  # fmt: skip
    """The whole plan, as far as it was made. `file` is the deploy.yaml as the user named it, for the next command;
    `applies` is false where this version only compiles for that kind of target."""
    parts = [_head(document, color, width, file)]
    if document["prediction"] and document["model"]:
        parts.append(memory.lines(document, color, width))
        if memory.starts(document):
            parts += [view(document, color, width) for view in (explain.lines, _speed, _sla, quality.lines, _steps)]
    found = diagnostics(report, color=color, width=width)
    parts += [found.rstrip("\n").split("\n") if found else [], _next(document, report, color, width, file, applies)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head(document: Mapping[str, Any], color: bool, width: int, file: str) -> list[str]:
    name = escape(document["name"] or file)
    model, engine, hardware = document["model"], document["engine"], document["hardware"]
    if not (model and engine and hardware):
        return [paint(name, "strong", color)]
    cards = hardware["gpus"]
    where = "CPU" if cards == ["cpu"] else f"{len(cards)} x {'/'.join(dict.fromkeys(cards))}"
    first = wrap(f"{name}: {model['source']} on {where}, {engine['name']} {engine['version']}", width)
    about = [words.parameters(model["parameters"]), f"{model['layers']} layers", f"{model['attention']} attention"]
    about += [f"adapter {a['name']} (rank {a['rank']}, {_mode(a['mode'])})" for a in model["adapters"]]
    if hardware["replicas"] > 1:
        about.append(f"{hardware['replicas']} engines of {words.counted(hardware['tensor_parallel_size'], 'card')}")
    lines = [paint(line, "strong", color) for line in first] + wrap(", ".join(about), width, "  ")
    return lines + (wrap(f"Model facts: {model['provenance']}", width, "  ") if model["provenance"] else [])


def _mode(mode: str) -> str:
    return {"merge": "merged", "serve": "served unmerged"}.get(mode, mode)


def _speed(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    prediction = document["prediction"]
    figures = [*prediction["memory"].values(), *prediction["speed"].values()]
    legend = words.bases(figures, prediction["transferred_from"])
    heading = wrap(f"SPEED under {words.load(document['workload'])}", width)
    lines = [paint(line, "strong", color) for line in heading]
    for key, figure in prediction["speed"].items():
        lines += _figure(key, figure, width)
        if key == "ttft_p95" and prediction["ttft_p95_from_start"]:
            flight = document["workload"]["concurrency"]
            lines += wrap(f"(p95 is the start, when all {flight} are sent at once)", width, "    ")
    lines += [*wrap(f"({legend})", width, "  "), ""]
    said = [_alone(prediction), _bound(prediction), _capacity(document), _cost(document), *prediction["warnings"]]
    return lines + [line for text in said if text for line in wrap(text, width, "  ")]


def _alone(prediction: Mapping[str, Any]) -> str:
    stream, limit = (prediction["single_stream"][key] for key in ("tokens_per_second", "physical_limit"))
    tokens = words.rate("tokens")
    shown = words.value if limit["low"] == limit["high"] else words.with_band
    return (
        f"One stream is bound by {words.ALONE[prediction['single_stream']['bound_by']]}: "
        f"{words.with_band(stream, tokens)}. Every token reads all weights "
        f"and its KV, so {shown(limit, tokens)} is the physical limit."
    )


def _bound(prediction: Mapping[str, Any]) -> str:
    """What would have to grow, and of an open load how busy it keeps the engine: a busy one is seldom full."""
    text = f"The load is bound by {words.BOUND[prediction['bound_by']]}."
    busy, load = prediction["utilization"], prediction["speed"]["requests_per_second"]["value"]
    most = prediction["capacity"]["requests_per_second"]["value"]
    if busy is None:
        return text
    full = f", at {words.share(load / most)} of its capacity" if most and load <= most else ""
    return f"{text} An engine is in a step {words.with_band(busy, words.share)} of the time{full}."


def _capacity(document: Mapping[str, Any]) -> str:
    prediction = document["prediction"]
    capacity, rate = prediction["capacity"], words.rate("requests")
    figure, more, flight = capacity["requests_per_second"], capacity["next"], capacity["in_flight"]
    limited = " inside the SLA" if any(line["name"] in LATENCIES for line in document["sla"]) else ""
    if figure["high"] == 0:
        text = f"Capacity{limited}: none, a single request at a time misses it already."
    else:
        at_once = f" with {words.value(flight, show_count)} at once" if flight else ""
        text = f"Capacity{limited}: {words.with_band(figure, rate)}{at_once}."
    if prediction["over_capacity"]:
        text += " The stated rate is above it: the queue grows without bound."
    if more:
        given = words.with_band(more["requests_per_second"], rate)
        text += f" The next cheapest change gives {given}: {more['change']}."
    return text


def _cost(document: Mapping[str, Any]) -> str:
    """Money, where the file says what a card costs an hour; which money it is, the reader knows."""
    cost = document["prediction"]["cost"]
    if cost is None:
        return ""
    now, full = (
        words.with_band(cost[key], words.money)
        for key in ("per_million_output_tokens", "per_million_output_tokens_at_capacity")
    )
    return f"A million output tokens cost {now} under this load, {full} at capacity."


def _figure(key: str, figure: Mapping[str, Any], width: int) -> list[str]:
    name, show = words.FIGURES[key]
    return memory.row("", name, figure, show, width)


def _sla(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    if not document["sla"]:
        return []
    lines = [paint("SLA", "strong", color)]
    for line in document["sla"]:
        name, show = words.FIGURES[line["name"]]
        verdict, style = VERDICTS[line["verdict"]]
        bound = "at least" if line["name"] in AT_LEAST else "at most"
        text = f"{name}: {bound} {show(line['limit'])}, predicted {words.with_band(line['predicted'], show)}"
        first, *rest = wrap(f"{text} {line['at']}", width - 12)
        lines += [f"  {paint(pad(verdict, 10), style, color)}{first}", *(f"            {more}" for more in rest)]
    return lines


def _steps(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    lines = [paint("STEPS", "strong", color)]
    for step in document["steps"]:
        mark = MARKS[step["action"]]
        first, *more = wrap(f"{pad(step['action'], 8)} {step['target']}", width, "    ", " " * 13)
        lines += [f"  {paint(mark, MARK_STYLES[mark], color)} {first.lstrip()}", *more]
        place = f" ({step['at']})" if step["at"] else ""
        lines += wrap(step["cause"] + place, width, " " * 13)
    if gap := _gap(document["switch"]):
        lines += wrap(gap, width, "  ")
    return lines


def _gap(switch: Mapping[str, Any] | None) -> str:
    if switch is None or switch["strategy"] in ("none", "first"):
        return ""
    longest = show_seconds(switch["worst_case"])
    if switch["strategy"] == "unknown":
        return f"If an engine runs now, nobody answers for {longest} at worst while it is replaced."
    return f"Nobody answers for {show_seconds(switch['gap_seconds'])}, {longest} at worst, while engines change."


def _next(document: Mapping[str, Any], report: Report, color: bool, width: int, file: str, applies: bool) -> list[str]:
    named = "" if file == "deploy.yaml" else f" -f {shlex.quote(escape(file))}"
    if report.errors:
        text = f"Next: mend what is said above, then `deployc plan{named}`"
    elif not any(step["action"] != "keep" for step in document["steps"]):
        text = "Nothing to do." if document["steps"] else ""
    else:
        text = f"Next: `deployc {'apply' if applies else 'compile -o out'}{named}`"
    return [paint(line, "strong", color) for line in wrap(text, width)] if text else []
