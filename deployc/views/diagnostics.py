"""Diagnostics like a compiler's: what, where, the source line with carets, why, and what to do."""

from __future__ import annotations

from deployc.diagnostics import Diagnostic, Report, Span
from deployc.views.layout import cut, escape, expand_tabs, paint, width, wrap


def diagnostics(report: Report, *, color: bool = False, width: int = 80) -> str:
    """All findings, errors first, with a line that counts them; "" where there are none."""
    found = report.ordered()
    if not found:
        return ""
    blocks = ["\n".join(_lines(diagnostic, color, width)) for diagnostic in found]
    return "\n\n".join([*blocks, count(report)]) + "\n"


def count(report: Report) -> str:
    """ "2 errors, 1 warning"."""
    numbers = []
    for severity in ("error", "warning", "note"):
        if number := sum(diagnostic.severity == severity for diagnostic in report):
            numbers.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(numbers)


def _lines(found: Diagnostic, color: bool, columns: int) -> list[str]:
    head, *more = wrap(f"{found.severity}[{found.code}]: {found.summary}", columns, rest="    ")
    mark, colon, summary = head.partition(": ")
    lines = [paint(mark, str(found.severity), color) + paint(colon + summary, "strong", color)]
    lines += [paint(line, "strong", color) for line in more]
    gutter = " " * len(str(found.at.line)) if found.at else ""
    if found.at:
        lines += _source(found.at, gutter, str(found.severity), color, columns)
    if found.detail:
        lines += wrap(found.detail, columns, f"{gutter} ")
    if found.fix:
        fix = wrap(f"fix: {found.fix}", columns, f"{gutter} = ", f"{gutter}   ")
        lines += [paint(line, "good", color) for line in fix]
    return lines


def _source(at: Span, gutter: str, style: str, color: bool, columns: int) -> list[str]:
    """The place, and its line with carets under the range; only the place where the line is not known."""
    arrow = paint(f"{gutter}-->", "place", color)
    lines = [f"{arrow} {escape(str(at))}"]
    if not at.excerpt:
        return lines
    bar = paint(f"{gutter} |", "place", color)
    shown, start, length = _window(at, columns - len(gutter) - 3)
    number = paint(f"{at.line} |", "place", color)
    carets = " " * start + paint("^" * length, style, color)
    return [*lines, bar, f"{number} {shown}".rstrip(), f"{bar} {carets}"]


def _window(at: Span, columns: int) -> tuple[str, int, int]:
    """The source line as shown, the column where the carets begin and how many they are; a long line is cut to them."""
    excerpt = at.excerpt.rstrip("\r\n")
    before = expand_tabs(excerpt[: at.column - 1])
    through = expand_tabs(excerpt[: at.end_column - 1])
    line, start, end = expand_tabs(excerpt), width(before), width(through)
    if max(end, start + 1) > columns:  # the range would be cut off: leave out the line's beginning
        skipped = min(start, max(0, end + 1 - columns)) + 1
        line, start, end = "…" + _without(line, skipped), start - skipped + 1, end - skipped + 1
    start = max(0, start)
    return cut(line, columns), start, max(1, min(end, columns) - start)


def _without(line: str, columns: int) -> str:
    """The line from a display column on; a wide character that stands across it becomes a space."""
    used = 0
    for index, character in enumerate(line):
        if used >= columns:
            return " " * (used - columns) + line[index:]
        used += width(character)
    return ""
