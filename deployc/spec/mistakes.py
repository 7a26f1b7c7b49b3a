"""Pydantic's errors in our words, each on its line, unknown keys with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from deployc.diagnostics import Diagnostic
from deployc.source.tree import Path
from deployc.spec import faults
from deployc.spec.faults import Wrong, expected, fault, said
from deployc.spec.keys import ELSEWHERE, known_keys, leaves
from deployc.spec.written import Written

_EXAMPLES = {"model": "{source: ./model}", "hardware": "{gpu: rtx-4090}", "engine": "{name: vllm, version: 0.33.0}",
             "workload": "{input_tokens: 1500, output_tokens: 256, concurrency: 8}", "version": "1",
             "name": "domain-qa", "source": "./model", "gpu": "rtx-4090", "input_tokens": "1500",
             "output_tokens": "256", "memory": "24GiB", "bandwidth": "1008GB/s", "mean": "1500", "p95": "4000",
             "reason": "why it is acceptable", "code": "DC402", "factor": "4", "rope": "yarn"}  # fmt: skip
MOST = 100
"""Mistakes shown at once: more of them is a file of another kind, and looking for what was meant takes time."""
_YES, _NO = ("yes", "y", "on"), ("no", "n", "off")


def mistakes(problems: Sequence[Any], written: Written, hidden: list[Path]) -> Iterator[Diagnostic]:
    """Diagnostics for `ValidationError.errors()`; nothing is said of the values at `hidden` paths."""
    for problem in problems[:MOST]:
        path = located(problem, written)
        if path not in hidden:
            yield _mistake(problem, path, written)
    if len(problems) > MOST:
        at = written.at_key(*located(problems[MOST], written))
        yield fault(faults.MORE, f"There are {len(problems) - MOST:,} more.", "correct those above first", at)


def located(problem: Any, written: Written) -> Path:
    """The error's place in the user's file: pydantic's also counts the item of a list that was not written as one."""
    path: list[str | int] = []
    for part in problem["loc"]:
        inside = written.get(*path)
        if isinstance(inside, list) if isinstance(part, int) else part != "[key]":
            path.append(part)
    return tuple(path)


def _mistake(problem: Any, path: Path, written: Written) -> Diagnostic:
    kind, value = str(problem["type"]), problem["input"]
    dotted = ".".join(map(str, path))
    if kind == "missing":
        fix = f"add {path[-1]}: {_EXAMPLES.get(str(path[-1]), '…')}"
        around = written.at(*path[:-1]) if len(path) > 1 and isinstance(path[-2], int) else written.at_key(*path[:-1])
        return fault(faults.MISSING, f"`{dotted}` is not given.", fix, around)
    if kind == "extra_forbidden":
        return _unknown_key(path, written)
    at_key = problem["loc"][-1] == "[key]"
    wrong = _wrong(kind, value, problem.get("ctx", {}), path)
    at = written.at_key(*path) if at_key else written.at(*path)
    return fault(wrong.kind, f"`{dotted or 'the file'}`: {wrong.detail}.", wrong.fix, at)


def _wrong(kind: str, value: Any, context: dict[str, Any], path: Path) -> Wrong:
    """What pydantic calls by one of its types, as one of ours."""
    if isinstance(wrong := context.get("error"), Wrong):
        return wrong
    if kind == "literal_error":
        return _not_allowed(value, str(context["expected"]).replace(" or ", ", "))
    if kind.startswith("bool"):
        word = value.lower() if isinstance(value, str) else ""
        fix = "write true" if word in (*_YES, "true") else "write false" if word in (*_NO, "false") else ""
        return expected("true or false", value, fix)
    if kind == "list_type":
        fix = f"write [{value}]" if isinstance(value, str | int) else "begin each item with `- `"
        return expected("a list", value, fix if value is not None else _empty("items"))
    return expected("a map", value, _empty("keys") if value is None else _inner(path))


def _empty(what: str) -> str:
    return f"write its {what} below it, or remove the key"


def _inner(path: Path) -> str:
    known = known_keys(path)
    return (
        f"write {known[0]}: and the like below it; known here: {', '.join(known)}"
        if known
        else "write key: value below it"
    )


def _not_allowed(value: Any, listed: str) -> Wrong:
    allowed = [word.strip().strip("'") for word in listed.split(",")]
    shown = ", ".join(allowed)
    plain = str(value).strip().lower().replace("_", "-")
    begun = [word for word in allowed if plain and word.startswith(plain)]
    close = get_close_matches(plain, allowed, 1, 0.6) or get_close_matches(
        plain, [a.replace("-", "") for a in allowed], 1
    )
    meant = next((word for word in allowed if close and word.replace("-", "") == close[0].replace("-", "")), None)
    quoted = isinstance(value, str) and value in allowed and value.isdigit()
    if quoted:
        fix = f"write {value} without quotes"
    elif begun or meant:
        fix = f"did you mean {' or '.join(begun) or meant}?"
    else:
        fix = f"write {'one of ' if len(allowed) > 1 else ''}{shown}"
    return Wrong(faults.CHOICE, f"{said(value)} is not {'one of ' if len(allowed) > 1 else ''}{shown}", fix)


def _unknown_key(path: Path, written: Written) -> Diagnostic:
    key, section = str(path[-1]), ".".join(str(part) for part in path[:-1])
    plain = key.lower().lstrip("-").replace("-", "_")
    known = known_keys(path[:-1])
    near = get_close_matches(plain, known, 1, 0.75)
    places = [ELSEWHERE[plain]] if plain in ELSEWHERE else leaves().get(plain, [])
    places = [place for place in places if place != f"{section}.{near[0] if near else ''}".lstrip(".")]
    if near:
        fix = f"did you mean {near[0]}?"
    elif places:
        fix = f"it belongs to {' or '.join(places[:3])}"
    elif far := get_close_matches(plain, known, 1, 0.55):
        fix = f"did you mean {far[0]}?"
    elif path[0] == "engine" and len(path) == 2:
        fix = f"a flag of the engine goes under engine.args, as {plain.replace('_', '-')}"
    else:
        fix = f"remove it; known here: {', '.join(known)}" + ("" if section else "; keys that begin with x- are free")
    where = f" of `{section}`" if section else ""
    return fault(faults.UNKNOWN, f"`{key}` is not a key{where}.", fix, written.at_key(*path))
