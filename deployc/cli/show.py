"""What every command prints: text on standard output, JSON alone when asked, diagnostics on standard error."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from deployc.diagnostics import Report, Severity, Stop, error


def text(content: str) -> bool:
    """Print to standard output, ending in exactly one newline; whether anybody still reads."""
    return write(sys.stdout, content.rstrip("\n") + "\n")


def write(stream: TextIO, content: str) -> bool:
    """Write at once. A reader that went away, as `| head` does, changes no exit code: the rest goes nowhere."""
    try:
        stream.write(content)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def json(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    from deployc.views.json_text import json_text

    text(json_text(document))


def report(diagnostics: Report, *, stream: TextIO | None = None, no_color: bool = False) -> None:
    """Print diagnostics like a compiler, to standard error unless told otherwise."""
    from deployc.views.diagnostics import diagnostics as view

    stream = stream or sys.stderr
    shown = view(diagnostics, color=color(stream, no_color), width=width(stream))
    if shown:
        write(stream, shown.rstrip("\n") + "\n" + more(diagnostics, stream))


def plan(document: Mapping[str, Any], diagnostics: Report, *, file: str, applies: bool, no_color: bool = False) -> None:
    """Print a plan for people."""
    from deployc.views.text import plan as view

    out = sys.stdout
    shown = view(document, diagnostics, color=color(out, no_color), width=width(out), file=file, applies=applies)
    if text(shown):
        write(out, more(diagnostics, out))


def more(diagnostics: Report, stream: TextIO) -> str:
    """Where the first of the errors or warnings is explained; only on a terminal: a file or a pipe holds the report."""
    first = next((found for found in diagnostics.ordered() if found.severity is not Severity.NOTE), None)
    return f"More: `deployc explain {first.code}`\n" if first and stream.isatty() else ""


def written(path: Path, content: str, keep: Iterable[Path] = ()) -> None:
    """Write a file whole, its folder made first. Raises Stop where the disk refuses.

    A link is followed. A device or a pipe, and the files to `keep`, are not replaced.
    """
    from deployc import files

    place = Path(os.path.realpath(path))
    try:
        if place.exists() and not place.is_file():
            raise OSError(None, "it is a folder, a device or a pipe, and would be replaced by a file")
        if any(place == Path(os.path.realpath(kept)) for kept in keep):
            raise OSError(None, "what is written there was read from it, and would be lost")
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write(place, content, mode=0o644)
    except OSError as wrong:
        detail = f"{path}: {wrong.strerror or wrong}."
        raise Stop(error("DC197", "a file cannot be written", detail, "name another place, or make room")) from None


def color(stream: TextIO, no_color: bool = False) -> bool:
    """Whether to colour: a terminal, and neither --no-color nor NO_COLOR nor TERM=dumb."""
    return not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def width(stream: TextIO) -> int:
    """Columns to wrap at: 80 where there is no terminal, never under 40 nor over 120."""
    columns = shutil.get_terminal_size((80, 24)).columns if stream.isatty() else 80
    return max(40, min(columns, 120))
