"""A file of JSON lines -> values with their lines; what is unreadable is a diagnostic with its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from deployc.diagnostics import Diagnostic, Report, Span, error

_LARGEST = 256 * 2**20
"""Bytes of a file of rows; a row is a kilobyte."""


def json_lines(path: Path, report: Report) -> list[tuple[int, object]]:
    """Each line that is JSON. DC670: the file cannot be read; DC671: a line is not JSON."""
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise OSError(None, f"it has more than {_LARGEST:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        report.add(_unreadable(path, getattr(wrong, "strerror", None) or str(wrong)))
        return []
    values: list[tuple[int, object]] = []
    wrong_lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values.append((number, json.loads(line)))
        except (ValueError, RecursionError) as wrong:
            wrong_lines.append((number, str(wrong)))
    if wrong_lines:
        fix = "Each line is one JSON object; write the file again, or take the line out."
        detail = first_of(wrong_lines)
        report.add(error("DC671", "a line of measured rows is not JSON", detail, fix, place(path, wrong_lines)))
    return values


def first_of(lines: Sequence[tuple[int, str]]) -> str:
    """What is wrong with the first of some lines, and which are the others."""
    rest = [str(number) for number, _ in lines[1:]]
    more = f"; so are lines {', '.join(rest[:10])}{' …' if len(rest) > 10 else ''}" if rest else ""
    return f"Line {lines[0][0]}: {lines[0][1]}{more}."


def place(path: Path, lines: Sequence[tuple[int, str]]) -> Span:
    """Where the first of them stands."""
    return Span(str(path), lines[0][0], 1, 2)


def _unreadable(path: Path, why: str) -> Diagnostic:
    fix = "Name a file of JSON lines, one engine start or run a line."
    return error("DC670", "a file of measured rows cannot be read", f"{path}: {why}.", fix)
