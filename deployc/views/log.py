"""A log for people: what was found in it, what the engine says of itself, and that beside the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.diagnostics import Report
from deployc.views.diagnostics import diagnostics
from deployc.views.layout import escape, paint, wrap

_OUTCOMES = {
    "failed": "the start failed", "died": "it served, and ended by a fault", "serving": "the server came up",
    "unfinished": "the start is not finished", "other": "no log of vLLM", "empty": "nothing",
}  # fmt: skip


def log(
    document: Mapping[str, Any],
    report: Report,
    facts: Sequence[tuple[str, str]],
    against: Sequence[tuple[str, str]],
    *,
    color: bool = False,
    width: int = 80,
) -> str:
    """All of it; `facts`, and those of them `against` a plan, are names and values as they are shown."""
    about = document["log"]
    lines = f"{about['lines']:,} line{'s' if about['lines'] != 1 else ''}"
    starts = f", the last of {about['starts']} starts" if about["starts"] > 1 else ""
    head = f"{about['file']}: {_OUTCOMES[document['outcome']]} ({lines}{starts})"
    parts = [[paint(line, "strong", color) for line in wrap(escape(head), width)]]
    parts.append(diagnostics(report, color=color, width=width).rstrip("\n").split("\n"))
    if document["beside"]:
        beside = [f"line {one['line']}, {one['code']}: {one['text']}" for one in document["beside"][:5]]
        parts.append(_list("Beside it", beside, color, width))
    if document["failure"] is None and document["outcome"] in ("failed", "died", "unfinished"):
        last = [f"{one['line']}: {one['text']}" for one in document["last"]]
        parts.append(_list("The last lines", last, color, width))
    if facts and document["outcome"] != "other":
        parts.append(_list("The engine says", [f"{name}: {value}" for name, value in facts], color, width))
    if document["settings"]:
        unlike = [f"{one['name']}: {one['read']} in the log, {one['file']} in the file" for one in document["settings"]]
        parts.append(_list("Other settings than the file's", unlike, color, width))
    if against:
        parts.append(_list("Beside the plan", [f"{name}: {value}" for name, value in against], color, width))
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _list(title: str, items: list[str], color: bool, width: int) -> list[str]:
    shown = [escape(item)[:1000] for item in items]
    return [paint(title, "strong", color), *(part for item in shown for part in wrap(item, width, "  ", "    "))]
