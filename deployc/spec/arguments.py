"""`engine.args` in one spelling: dashes, none in front; whatever else the user typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from deployc.diagnostics import Diagnostic, Span
from deployc.source.tree import Path
from deployc.spec import faults
from deployc.spec.faults import fault
from deployc.spec.written import Written

_ARGS = ("engine", "args")
_WITH_VALUE = re.compile(r"-*([A-Za-z][A-Za-z0-9._-]{0,99})(?:\s*=\s*|\s+)(\S.{0,99})\Z")
_FLAG = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,99}\Z")


def canonical(name: str) -> str:
    """`--max_num_seqs`, `max_num_seqs` and `max-num-seqs` are one flag; what follows a dot is a key, kept as it is."""
    flag, dot, key = name.lstrip("-").partition(".")
    return flag.replace("_", "-") + dot + key


def normalised(written: Written) -> tuple[Written, list[Diagnostic]]:
    """The file with `engine.args` in one spelling, and DC165 for names that are no flags or come twice."""
    args = written.get(*_ARGS)
    if not isinstance(args, dict):
        return written, []
    found: list[Diagnostic] = []
    names: dict[str, str] = {}
    for name in args:
        flag = canonical(name)
        at = written.at_key(*_ARGS, name)
        if not _FLAG.match(flag.replace("_", "-")):
            detail = f"{name!r} cannot be the name of a flag."
            found.append(fault(faults.FLAG, detail, _apart(name, args[name]), at))
        elif flag in names.values():
            first = next(spelt for spelt, known in names.items() if known == flag)
            where = written.at_key(*_ARGS, first)
            detail = f"--{flag} is set by {first!r} on line {where.line if where else '?'} already."
            found.append(fault(faults.FLAG, detail, "keep one of the two", at))
            continue
        names[name] = flag
    values = {**written.values, "engine": {**written.section("engine"), "args": {names[n]: args[n] for n in names}}}
    return Written(values, _renamed(written.spans, names), _renamed(written.keys, names)), found


def _apart(name: str, value: Any) -> str:
    """What to write where the key holds the value too, as on a command line: "max-num-seqs=64", "--seed 1"."""
    both = _WITH_VALUE.match(name)
    if both and value is None:
        return f"write {canonical(both[1])}: {both[2]}"
    return "write it as the engine does, e.g. max-num-seqs, the value after it"


def unusable(written: Written) -> Iterator[Diagnostic]:
    """DC166 for texts in `engine.args` that no command line can carry."""
    for path, value in written.leaves():
        if path[:2] == _ARGS and isinstance(value, str) and re.search("[\0\x1b\x7f]", value):
            detail = f"`{'.'.join(map(str, path))}` holds a control character."
            yield fault(faults.TEXT, detail, "remove it", written.at(*path))


def _renamed(spans: Any, names: dict[str, str]) -> dict[Path, Span]:
    return {_path(path, names): span for path, span in spans.items() if path[:2] != _ARGS or path[2:3] in _kept(names)}


def _path(path: Path, names: dict[str, str]) -> Path:
    return (*_ARGS, names[str(path[2])], *path[3:]) if path[:2] == _ARGS and len(path) > 2 else path


def _kept(names: dict[str, str]) -> set[tuple[str, ...]]:
    return {(), *((name,) for name in names)}
