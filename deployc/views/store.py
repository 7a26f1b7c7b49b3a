"""What a store holds and what may go from it, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deployc.units import show_bytes
from deployc.views.layout import escape, pad, width

_COLUMNS = {"key": "KEY", "bytes": "SIZE", "built_at": "BUILT", "weights": "WEIGHTS", "made_of": "MODEL AND ADAPTERS",
            "quality": "QUALITY", "used_by": "USED BY"}  # fmt: skip


def listing(document: Mapping[str, Any]) -> str:
    """The document of `store list` as a table, and a line each for what else takes space."""
    artifacts = document["artifacts"]
    lines = _table(artifacts) if artifacts else [f"{escape(document['store'])}: no artifacts"]
    for build in document["unfinished"]:
        state = "being built" if build["at_work"] else "unfinished"
        lines.append(f"{build['key'][:12]}  {show_bytes(build['bytes'])}  {state}")
    if sources := document["sources"]:
        total = sum(source["bytes"] for source in sources)
        lines.append(f"{len(sources)} downloaded source{'s' if len(sources) > 1 else ''}  {show_bytes(total)}")
    return "\n".join(lines)


def going(removed: Sequence[Mapping[str, Any]]) -> str:
    """A line each for what `store gc` removes, with its reason, and their sum."""
    lines = [f"{show_bytes(one['bytes']):>9}  {escape(one['name'])}: {escape(one['why'])}" for one in removed]
    total = sum(one["bytes"] for one in removed)
    return "\n".join([*lines, f"{show_bytes(total):>9}  in all"])


def _table(artifacts: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [_row(artifact) for artifact in artifacts]
    shown = [name for name in _COLUMNS if any(row[name] for row in rows)]
    table = [{name: _COLUMNS[name] for name in shown}, *rows]
    widths = {name: max(width(row[name]) for row in table) for name in shown}
    return ["  ".join(pad(row[name], widths[name]) for name in shown).rstrip() for row in table]


def _row(artifact: Mapping[str, Any]) -> dict[str, str]:
    made_of = [one["name"] or one["source"] for one in artifact["made_of"]]
    return {
        "key": artifact["key"][:12],
        "bytes": show_bytes(artifact["bytes"]),
        "built_at": escape(artifact["built_at"]),
        "weights": escape(artifact["weights"]),
        "made_of": escape(" + ".join(made_of)),
        "quality": _quality(artifact["quality"]),
        "used_by": escape(", ".join(artifact["used_by"])),
    }


def _quality(measured: Mapping[str, Any] | None) -> str:
    """What quantization cost, in the two figures that people ask for first."""
    if not measured:
        return ""
    increase, agreement = measured["perplexity_increase"], measured["top1_agreement"]
    return f"perplexity {increase['value']:+.2%}, top-1 {agreement['value']:.1%}"
