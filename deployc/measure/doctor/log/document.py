"""The JSON form of what is said of a log."""

from __future__ import annotations

import math
from typing import Any

from deployc.diagnostics import Report
from deployc.measure.doctor.log.facts import Fact
from deployc.measure.doctor.log.judge import Told
from deployc.measure.doctor.log.reading import Found

FORMAT = "1.0"


def document(told: Told, report: Report) -> dict[str, Any]:
    """The JSON form: log, outcome, failure and those beside it, facts, figures against the plan's, diagnostics."""
    from deployc.plan.document import diagnostics

    reading = told.reading
    return {
        "format_version": FORMAT,
        "log": {
            "file": reading.window.name, "bytes": reading.window.size, "lines": reading.lines, "whole": reading.whole,
            "server": reading.server or None, "starts": reading.starts,
        },
        "outcome": reading.outcome,
        "failure": _failure(reading.failures[0], told) if reading.failures else None,
        "beside": [_failure(found, None) for found in reading.failures[1:]],
        "facts": [_fact(fact) for fact in reading.facts],
        "against": [
            {"name": one.name, "read": one.read.value, "line": one.read.line, "inside": one.inside}
            | {end: _finite(getattr(one.predicted, end)) for end in ("value", "low", "high")}
            | {"unit": one.predicted.unit, "basis": one.predicted.basis}
            for one in told.figures
        ],
        "settings": [{"name": one.name, "read": _whole(one.read.value), "file": one.written} for one in told.settings],
        "last": [{"line": span.line, "text": span.excerpt} for span in reading.last],
        "diagnostics": diagnostics(report),
    }  # fmt: skip


def _failure(found: Found, told: Told | None) -> dict[str, Any]:
    code = told.diagnostics[0].code if told else found.failure.code
    fix = told.diagnostics[0].fix if told else found.failure.fix
    return {
        "code": code, "kind": found.failure.name, "text": found.text, "line": found.at.line, "fix": fix,
        "source": found.failure.source,
    }  # fmt: skip


def _fact(fact: Fact) -> dict[str, Any]:
    return {"name": fact.name, "value": _whole(fact.value), "unit": fact.unit or None, "line": fact.line}


def _whole(value: float | str) -> float | int | str:
    return int(value) if isinstance(value, float) and value == int(value) else value


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
