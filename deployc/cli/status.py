"""`deployc status`: what runs on this host, since when, and how it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from deployc.cli import options, show
from deployc.cli.shaped import shaped
from deployc.diagnostics import ExitCode

if TYPE_CHECKING:
    from deployc.apply.observe import Status


def command(
    file: options.File = options.DEFAULT_FILE, json: options.Json = False, no_color: options.NoColor = False
) -> int:
    """Say what runs for a deploy.yaml on this host. Example: deployc status"""
    import os

    from deployc.apply import observe, state

    deploy = shaped(file, json=json, no_color=no_color)
    status = observe.status(state.locate(deploy, file.parent, os.environ))
    if json:
        show.json({"format_version": "1.0", "name": deploy.name, **asdict(status), "diagnostics": []})
    else:
        show.text(text(deploy.name, status))
    return ExitCode.OK


def text(name: str, status: Status) -> str:
    """A status for people: one fact a line, in columns."""
    from deployc.units import show_bytes

    rows = [
        ("condition", status.condition),
        ("reason", status.reason),
        ("url", status.url),
        ("model", status.served_name),
        ("engine", f"vllm {status.engine}" if status.engine else None),
        ("since", status.since),
        ("restarts", str(status.restarts) if status.restarts else None),
        ("memory", f"{show_bytes(status.resident_bytes)} resident" if status.resident_bytes else None),
        ("process", f"{status.pid}, supervised by {status.supervisor}" if status.pid else None),
        ("applied", status.entry),
        ("digest", status.digest),
        ("log", status.log),
    ]
    lines = [name, *(f"  {label:<10} {value}" for label, value in rows if value)]
    return "\n".join([*lines, *(f"    {line}" for line in status.log_tail)])
