"""From plain values to Deploy: what pydantic finds wrong, in words, once, on its line, with its siblings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from deployc.diagnostics import Report, Span
from deployc.spec.deploy import Deploy, Path, bind
from deployc.spec.mistakes import located, mistakes
from deployc.spec.secrets import literal_secrets, masked
from deployc.spec.sense import sense
from deployc.spec.unsupported import unsupported

_STAND_IN: dict[str, Any] = {
    "version": 1,
    "name": "stand-in",
    "model": {"source": "./stand-in"},
    "hardware": {"gpu": "stand-in"},
    "workload": {"input_tokens": 2**31, "output_tokens": 1, "concurrency": 1},
    "engine": {"version": "0.0.0"},
}
"""Takes the place of what could not be understood, only so that the rest of the file is still looked at."""


class Written(Protocol):
    """What READ hands over: a `source.Document`, of which only this is needed."""

    @property
    def values(self) -> dict[str, Any]: ...
    @property
    def spans(self) -> Mapping[Path, Span]: ...
    @property
    def keys(self) -> Mapping[Path, Span]: ...
    @property
    def folder(self) -> Any: ...


def shape(document: Written) -> tuple[Deploy | None, Report]:
    """Deploy, or None where a value cannot be understood at all; errors in the report either way (DC150-DC189)."""
    report = Report()
    secrets = literal_secrets(document.values, document.spans)
    spans = masked(document.spans, secrets)
    keys = masked(document.keys, secrets)
    report.extend(literal_secrets(document.values, spans))
    try:
        deploy = bind(document.values, spans, str(document.folder))
    except ValidationError as wrong:
        errors = wrong.errors(include_url=False)
        places = {(d.at.line, d.at.column) for d in report if d.at}
        found = mistakes(errors, document.values, spans, keys)
        report.extend(d for d in found if not d.at or (d.at.line, d.at.column) not in places)
        _rest(document, spans, [located(problem, document.values) for problem in errors], report)
        return None, report
    report.extend(unsupported(deploy))
    report.extend(sense(deploy))
    return deploy, report


def _rest(document: Written, spans: Mapping[Path, Span], wrong: list[Path], report: Report) -> None:
    """What else is to say of a file of which some values could not be understood."""
    values = copy.deepcopy(document.values)
    for path in sorted(wrong, key=len, reverse=True):
        _remove(values, path)
    for section, stand_in in _STAND_IN.items():
        if isinstance(stand_in, dict) and isinstance(values.setdefault(section, {}), dict):
            values[section] = {**stand_in, **values[section]}
        else:
            values.setdefault(section, stand_in)
    if isinstance(values["workload"], dict) and "request_rate" in values["workload"]:
        values["workload"].pop("concurrency", None)
    try:
        deploy = bind(values, spans, str(document.folder))
    except ValidationError:
        return
    places = {spans[path] for path in wrong if path in spans}
    report.extend(d for d in [*unsupported(deploy), *sense(deploy)] if d.at not in places)


def _remove(values: Any, path: Path) -> None:
    """Delete the value at a path; the item of a list goes as a whole, so that its siblings keep their places."""
    if not path:
        return
    for part in path[:-1]:
        if isinstance(part, int):
            break  # inside a list: an item with a hole may not validate; let the second try fail
        values = values.get(part) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(path[-1], None)
