"""Pydantic's errors in our words: one a place, unions reported once, unknown keys with what was probably meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from deployc.diagnostics import Diagnostic, Span, error
from deployc.spec.deploy import Deploy, Path
from deployc.spec.keys import ELSEWHERE

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "dict": "a map",
    "model": "a map",
    "decimal": "a number",
}
MOST = 100
"""Mistakes shown at once: more of them is a file of another kind, and looking for what was meant takes time."""
_RANGES = ("greater_than", "less_than", "too_short", "too_long", "finite_number", "string_too")


def mistakes(
    errors: Sequence[Any], values: Mapping[str, Any], spans: Mapping[Path, Span], keys: Mapping[Path, Span]
) -> list[Diagnostic]:
    """Diagnostics for `ValidationError.errors()`, in the order of the file."""
    places: dict[Path, list[Any]] = {}
    for problem in errors:
        places.setdefault(located(problem, values), []).append(problem)
    outer = {path[:end] for path in places for end in range(len(path))}
    for path in list(places):  # `{mean: x}` is wrong inside, not because it is no number
        if path in outer and all(_is_type(p) for p in places[path]):
            del places[path]
    shown = list(places.items())[:MOST]
    found = [_diagnostic(path, problems, spans, keys) for path, problems in shown]
    found.sort(key=lambda d: (d.at.file, d.at.line, d.at.column) if d.at else ("", 0, 0))
    if len(places) > MOST:
        found.append(_more(len(places) - MOST, _at(list(places)[MOST], spans)))
    return found


def located(problem: Any, values: Mapping[str, Any]) -> Path:
    """The error's location in the user's data: pydantic also lists the members of unions it tried."""
    node: Any = values
    path: list[str | int] = []
    loc = problem["loc"]
    for index, part in enumerate(loc):
        inside = part in node if isinstance(node, dict) else isinstance(node, list) and part in range(len(node))
        if inside:
            node = node[part]
        elif not (problem["type"] == "missing" and index == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)


def _is_type(problem: Any) -> bool:
    return str(problem["type"]).endswith(("_type", "_from_float", "_parsing", "literal_error", "value_error"))


def _at(path: Path, spans: Mapping[Path, Span]) -> Span | None:
    for end in range(len(path), -1, -1):
        if path[:end] in spans:
            return spans[path[:end]]
    return None


def _diagnostic(path: Path, problems: list[Any], spans: Mapping[Path, Span], keys: Mapping[Path, Span]) -> Diagnostic:
    kind, name = str(problems[0]["type"]), _dotted(path)
    at = _at(path, spans)
    if kind == "missing":
        return error("DC150", "a required key is missing", f"{name} is not given.", f"add {path[-1]}: …", at)
    if kind == "extra_forbidden":
        return _unknown_key(path, keys.get(path, at), at)
    value = problems[0]["input"]
    quantities = [p for p in problems if p["type"] == "value_error"]
    if quantities:
        said = str(quantities[-1]["ctx"]["error"])
        also = _or_words(problems)
        return error(
            "DC153",
            "a quantity cannot be read",
            f"{name}: {said}.",
            "write the value with its unit" + (f", or {also}" if also else ""),
            at,
        )
    if kind == "string_pattern_mismatch":
        return error(
            "DC155",
            "a name is not a DNS label",
            f"{name}: {value!r} must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit.",
            "rename it, e.g. domain-qa",
            at,
        )
    literals = [word for p in problems if p["type"] == "literal_error" for word in _expected(p)]
    wanted = list(dict.fromkeys(_TYPES[p["type"].split("_")[0]] for p in problems if p["type"].split("_")[0] in _TYPES))
    if any(str(p["type"]).startswith(_RANGES) for p in problems):
        said = str(next(p for p in problems if str(p["type"]).startswith(_RANGES))["msg"])
        said = said.replace("Input should be", "must be").replace("String should", "it should")
        return error("DC154", "a value is out of range", f"{name}: {value!r} {said}.", "correct the value", at)
    if literals and (isinstance(value, str) or not wanted):
        return _not_allowed(name, value, literals, wanted, at)
    wanted += [repr(word) for word in literals]
    return error(
        "DC152",
        "a value has the wrong type",
        f"{name} takes {' or '.join(wanted) or problems[0]['msg']}, not {_said(value)}.",
        _retyped(value, wanted),
        at,
    )


def _more(number: int, at: Span | None) -> Diagnostic:
    detail = f"{number:,} more than the {MOST} shown; the first of them is here."
    return error("DC172", "there are more mistakes of this kind", detail, "mend those shown first", at)


def _expected(problem: Any) -> list[str]:
    text = str(problem["ctx"]["expected"]).replace(" or ", ", ")
    return [word.strip().strip("'") for word in text.split(",")]


def _or_words(problems: list[Any]) -> str:
    return " or ".join(dict.fromkeys(word for p in problems if p["type"] == "literal_error" for word in _expected(p)))


def _not_allowed(name: str, value: Any, literals: list[str], wanted: list[str], at: Span | None) -> Diagnostic:
    allowed = ", ".join([*dict.fromkeys(literals), *wanted])
    close = get_close_matches(str(value).lower(), literals, 1, 0.6)
    fix = f"did you mean {close[0]}?" if close else f"choose one of: {allowed}"
    return error("DC156", "a value is not one of those allowed", f"{name}: {value!r} is not one of {allowed}.", fix, at)


def _unknown_key(path: Path, at: Span | None, value_at: Span | None) -> Diagnostic:
    key, parent = str(path[-1]), _dotted(path[:-1])
    place = ELSEWHERE.get(key.lower().replace("-", "_").lstrip("_"))
    known = _known_keys(path[:-1])
    close = get_close_matches(key.lower().replace("-", "_"), known, 1, 0.6)
    if close:
        fix = f"did you mean {close[0]}?"
    elif place and place != _dotted(path):
        fix = f"it belongs to {place}"
    else:
        fix = "remove it" + (f"; known here: {', '.join(known)}" if known else "") + ("" if parent else "; x-… is free")
    where = f" in {parent}" if parent else ""
    return error("DC151", "an unknown key", f"{key!r} is not a key{where}.", fix, at or value_at)


def _known_keys(path: Path) -> list[str]:
    """The keys of the section at a path, read from the models."""
    model: Any = Deploy
    for part in path:
        if isinstance(part, int):
            continue
        field = getattr(model, "model_fields", {}).get(part)
        model = next(iter(_models(field.annotation)), None) if field else None
        if model is None:
            return []
    return list(model.model_fields)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models(inner)]


def _dotted(path: Path) -> str:
    return ".".join(map(str, path)) or "the file"


def _said(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    kind = {dict: "a map", list: "a list", str: "the text", int: "the number", float: "the number"}[type(value)]
    return kind if isinstance(value, dict | list) else f"{kind} {str(value)[:60]!r}"


def _retyped(value: Any, wanted: list[str]) -> str:
    number = isinstance(value, str) and value.strip().lstrip("-").replace(".", "", 1).isdigit()
    if number and "a whole number" in wanted:
        return "write it without quotes"
    if "text" in wanted and isinstance(value, bool | int | float):
        return "write it in quotes"
    return "correct the value"
