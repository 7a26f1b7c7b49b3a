"""Files of JSON lines -> rows: what is unreadable is a diagnostic with file and line, never a traceback.

Three formats are told apart by the keys that each always has: own starts (`engine_version`, `available_kv_gib`), starts
made by others (`vllm_version`, `basis`), and runs, of which the speed was measured (`load`, and a figure of speed).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.measure.calibrate.rows import Row, own_start, published_start
from deployc.measure.calibrate.speed.row import RATES, TIMES, SpeedRow, speed_row

_LARGEST = 256 * 2**20
"""Bytes of a file of rows; a row is a kilobyte."""


@dataclass(slots=True)
class Rows:
    """Starts, of which the memory was measured, and runs, of which the speed was."""

    starts: list[Row] = field(default_factory=list)
    runs: list[SpeedRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.starts or self.runs)


def read(paths: Iterable[Path]) -> tuple[Rows, Report]:
    """Every row of every file. DC670: a file cannot be read; DC671: a line is not JSON; DC672: it is no measured row."""
    rows, report = Rows(), Report()
    for path in paths:
        try:
            if path.is_file() and path.stat().st_size > _LARGEST:
                raise OSError(None, f"it has more than {_LARGEST:,} bytes")
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as wrong:
            report.add(_unreadable(path, getattr(wrong, "strerror", None) or str(wrong)))
            continue
        report.extend(_rows(path, text, rows))
    return rows, report


def _rows(path: Path, text: str, into: Rows) -> list[Diagnostic]:
    found = 0
    no_json: list[tuple[int, str]] = []
    no_row: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as wrong:
            no_json.append((number, f"{wrong}"))
            continue
        if not isinstance(values, dict) or not _taken(values, str(path), number, into):
            no_row.append((number, _what_it_is(values)))
        else:
            found += 1
    faults = [_no_json(path, no_json)] if no_json else []
    faults += [_no_row(path, no_row)] if no_row else []
    if not found and not faults:
        faults.append(_no_row(path, [(1, "the file is empty")]))
    return faults


def _taken(values: Mapping[str, Any], file: str, line: int, into: Rows) -> bool:
    """Whether the keys are those of a format; a run tells the speed, and what it says of memory besides is not read."""
    if "load" in values and (RATES.keys() | TIMES.keys()) & values.keys():
        into.runs.append(speed_row(values, file, line))
    elif "engine_version" in values and "available_kv_gib" in values:
        into.starts.append(own_start(values, file, line))
    elif "vllm_version" in values and "basis" in values:
        into.starts.append(published_start(values, file, line))
    else:
        return False
    return True


def _what_it_is(values: object) -> str:
    if not isinstance(values, Mapping):
        return f"{str(values)[:40]!r} is no object"
    if "load" in values:
        return f"it has a load, and no figure of speed ({', '.join([*RATES, *TIMES])})"
    return f"its keys are {', '.join(map(str, list(values)[:6])) or 'none'}"


def _unreadable(path: Path, why: str) -> Diagnostic:
    fix = "Name a file of JSON lines, one engine start or run a line."
    return error("DC670", "a file of measured rows cannot be read", f"{path}: {why}.", fix)


def _no_json(path: Path, lines: list[tuple[int, str]]) -> Diagnostic:
    fix = "Each line is one JSON object; write the file again, or take the line out."
    detail = f"Line {lines[0][0]}: {lines[0][1]}{_more(lines)}."
    return error("DC671", "a line of measured rows is not JSON", detail, fix, _at(path, lines))


def _no_row(path: Path, lines: list[tuple[int, str]]) -> Diagnostic:
    fix = (
        "A row of memory has engine_version and available_kv_gib (own starts), or vllm_version and basis (others'); a "
        "row of speed has load and out_tok_s."
    )
    detail = f"Line {lines[0][0]}: {lines[0][1]}{_more(lines)}."
    return error("DC672", "these are no measured rows", detail, fix, _at(path, lines))


def _more(lines: list[tuple[int, str]]) -> str:
    rest = [str(number) for number, _ in lines[1:]]
    return f"; so are lines {', '.join(rest[:10])}{' …' if len(rest) > 10 else ''}" if rest else ""


def _at(path: Path, lines: list[tuple[int, str]]) -> Span:
    return Span(str(path), lines[0][0], 1, 2)
