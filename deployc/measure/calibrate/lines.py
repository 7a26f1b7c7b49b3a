"""Files of JSON lines -> rows: what is unreadable is a diagnostic with file and line, never a traceback.

Two formats are told apart by the keys that each always has: own starts (`engine_version`, `available_kv_gib`) and
starts made by others (`vllm_version`, `basis`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.measure.calibrate.rows import Row, own_start, published_start

_LARGEST = 256 * 2**20
"""Bytes of a file of rows; a row is a kilobyte."""


def read(paths: Iterable[Path]) -> tuple[list[Row], Report]:
    """Every row of every file. DC670: a file cannot be read; DC671: a line is no JSON object; DC672: no memory row."""
    rows: list[Row] = []
    report = Report()
    for path in paths:
        try:
            if path.is_file() and path.stat().st_size > _LARGEST:
                raise OSError(None, f"it has more than {_LARGEST:,} bytes")
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as wrong:
            report.add(_unreadable(path, getattr(wrong, "strerror", None) or str(wrong)))
            continue
        found, faults = _rows(path, text)
        rows += found
        report.extend(faults)
    return rows, report


def _rows(path: Path, text: str) -> tuple[list[Row], list[Diagnostic]]:
    rows: list[Row] = []
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
        reader = _reader(values)
        if reader is None:
            no_row.append((number, _what_it_is(values)))
        else:
            rows.append(reader(values, str(path), number))
    faults = [_no_json(path, no_json)] if no_json else []
    faults += [_no_row(path, no_row)] if no_row else []
    if not rows and not faults:
        faults.append(_no_row(path, [(1, "the file is empty")]))
    return rows, faults


def _reader(values: object) -> Any:
    """The function that reads this format; None where it is none of memory rows."""
    if not isinstance(values, dict):
        return None
    if "engine_version" in values and "available_kv_gib" in values:
        return own_start
    return published_start if "vllm_version" in values and "basis" in values else None


def _what_it_is(values: object) -> str:
    if not isinstance(values, Mapping):
        return f"{str(values)[:40]!r} is no object"
    if "load" in values or "throughput" in values:
        return "it is a row of speed, and rows of memory are scored"
    return f"its keys are {', '.join(map(str, list(values)[:6])) or 'none'}"


def _unreadable(path: Path, why: str) -> Diagnostic:
    fix = "Name a file of JSON lines, one engine start a line."
    return error("DC670", "a file of measured rows cannot be read", f"{path}: {why}.", fix)


def _no_json(path: Path, lines: list[tuple[int, str]]) -> Diagnostic:
    fix = "Each line is one JSON object; write the file again, or take the line out."
    detail = f"Line {lines[0][0]}: {lines[0][1]}{_more(lines)}."
    return error("DC671", "a line of measured rows is not JSON", detail, fix, _at(path, lines))


def _no_row(path: Path, lines: list[tuple[int, str]]) -> Diagnostic:
    fix = "A row of memory has engine_version and available_kv_gib (own starts), or vllm_version and basis (others')."
    detail = f"Line {lines[0][0]}: {lines[0][1]}{_more(lines)}."
    return error("DC672", "these are no rows of memory", detail, fix, _at(path, lines))


def _more(lines: list[tuple[int, str]]) -> str:
    rest = [str(number) for number, _ in lines[1:]]
    return f"; so are lines {', '.join(rest[:10])}{' …' if len(rest) > 10 else ''}" if rest else ""


def _at(path: Path, lines: list[tuple[int, str]]) -> Span:
    return Span(str(path), lines[0][0], 1, 2)
