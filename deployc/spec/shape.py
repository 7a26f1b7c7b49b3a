"""From plain values to Deploy: what pydantic finds wrong, in words, once, on its line, with its siblings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from deployc.diagnostics import Diagnostic, Report, Span
from deployc.spec.deploy import Deploy, Path, bind
from deployc.spec.mistakes import located, mistakes
from deployc.spec.secrets import literal_secrets, masked, without_secrets
from deployc.spec.sense import sense
from deployc.spec.unsupported import unsupported

_STAND_IN: dict[str, Any] = {
    "version": 1,
    "name": "stand-in",
    "model": {"source": "./stand-in"},
    "hardware": {"gpu": "stand-in"},
    "workload": {"input_tokens": 2**31 - 1, "output_tokens": 1, "concurrency": 1},
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
    spans = masked(document.spans, document.values, document.spans)
    keys = masked(document.keys, document.values, document.spans)
    secrets = literal_secrets(document.values, spans)
    try:
        deploy: Deploy | None = bind(document.values, spans, str(document.folder))
    except ValidationError as wrong:
        deploy = None
        errors = wrong.errors(include_url=False)
        places = [located(problem, document.values) for problem in errors]
        found = [*mistakes(errors, document.values, spans, keys), *_rest(document, spans, places)]
    else:
        assert deploy is not None  # noqa: S101  (bind returns or raises)
        found = [*unsupported(deploy), *sense(deploy)]
    return deploy, Report([*secrets, *without_secrets(found, secrets)])


def _rest(document: Written, spans: Mapping[Path, Span], wrong: list[Path]) -> list[Diagnostic]:
    """What else is to say of a file of which some values could not be understood: the file without them, looked at."""
    places = {spans[path] for path in wrong if path in spans}
    for depth in (None, 2, 1):  # without the value; where what is left makes no sense, without its key, its section
        values = copy.deepcopy(document.values)
        for path in wrong:
            _remove(values, path[:depth])
        try:
            deploy = bind(_completed(values, document.values.get("workload")), spans, str(document.folder))
        except ValidationError:
            continue
        return [d for d in [*unsupported(deploy), *sense(deploy)] if d.at not in places]
    return []


def _completed(values: dict[str, Any], written: Any) -> dict[str, Any]:
    """The values with stand-ins for what is missing; `written` is the workload of the file, its load perhaps unsaid."""
    left = values.get("workload")
    unsaid = isinstance(written, dict) and not _states_load(written)
    for section, stand_in in _STAND_IN.items():
        if isinstance(stand_in, dict) and isinstance(values.setdefault(section, {}), dict):
            values[section] = {**stand_in, **values[section]}
        else:
            values.setdefault(section, stand_in)
    if isinstance(left, dict) and (unsaid or left.get("request_rate") is not None) and not left.get("concurrency"):
        del values["workload"]["concurrency"]
    return values


def _states_load(workload: dict[str, Any]) -> bool:
    return any(workload.get(key) is not None for key in ("concurrency", "request_rate"))


def _remove(values: Any, path: Path) -> None:
    """Delete the value at a path; a list goes as a whole, since its other items would change their places."""
    end = next((index for index, part in enumerate(path) if isinstance(part, int)), len(path))
    for part in path[: end - 1]:
        values = values.get(part) if isinstance(values, dict) else None
    if isinstance(values, dict) and path:
        values.pop(path[end - 1], None)
