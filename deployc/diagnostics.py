"""What every stage returns besides its value: diagnostics with a place in the user's file, collected in a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Severity(StrEnum):
    """An error stops `apply`; a warning does not; a note explains."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Span:
    """A range in a file, as an editor counts: lines and columns from 1, `end_column` exclusive, same line.

    `excerpt` is the source line, kept so that a view can show it with carets; whoever makes the span masks secrets.
    """

    file: str
    line: int
    column: int
    end_column: int
    excerpt: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `summary` is constant for a code; `detail` says what and why with figures; `fix` what to do.

    `basis` is that of the prediction it rests on ("" where it rests on no prediction): `accept` may lower an error
    only where the basis is neither "" nor "exact".
    """

    code: str
    severity: Severity
    summary: str
    detail: str = ""
    fix: str = ""
    at: Span | None = None
    basis: str = ""


def error(
    code: str, summary: str, detail: str = "", fix: str = "", at: Span | None = None, basis: str = ""
) -> Diagnostic:
    """An error diagnostic."""
    return Diagnostic(code, Severity.ERROR, summary, detail, fix, at, basis)


def warning(
    code: str, summary: str, detail: str = "", fix: str = "", at: Span | None = None, basis: str = ""
) -> Diagnostic:
    """A warning diagnostic."""
    return Diagnostic(code, Severity.WARNING, summary, detail, fix, at, basis)


def note(code: str, summary: str, detail: str = "", fix: str = "", at: Span | None = None) -> Diagnostic:
    """A note: nothing to mend, something to know."""
    return Diagnostic(code, Severity.NOTE, summary, detail, fix, at)


@dataclass(slots=True)
class Report:
    """Diagnostics in the order found; `ordered()` sorts them by file, line and code for showing."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    _seen: set[Diagnostic] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._seen = set(self.diagnostics)

    def add(self, diagnostic: Diagnostic) -> None:
        """Append one diagnostic, once: the same finding at the same place is not repeated."""
        if diagnostic not in self._seen:
            self._seen.add(diagnostic)
            self.diagnostics.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Append several, each once."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors alone."""
        return [d for d in self.diagnostics if d.severity is Severity.ERROR]

    def ordered(self) -> list[Diagnostic]:
        """Errors, then warnings, then notes; in each by place in the file, then code."""
        rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}

        def key(d: Diagnostic) -> tuple[int, str, int, int, str]:
            at = d.at
            return (rank[d.severity], at.file if at else "~", at.line if at else 0, at.column if at else 0, d.code)

        return sorted(self.diagnostics, key=key)

    def lowered(self, index: int, reason: str) -> None:
        """Turn the error at `index` into a warning because the user accepted it, and say so in its detail."""
        was = self.diagnostics[index]
        detail = f"{was.detail}\nAccepted: {reason}" if was.detail else f"Accepted: {reason}"
        self.diagnostics[index] = replace(was, severity=Severity.WARNING, detail=detail)


class ExitCode:
    """Exit codes of every command (`docs/reference.md`); the first that applies, in this order."""

    USAGE = 64
    INTERRUPTED = 130
    WRONG_FILE = 3
    FAILED = 1
    REFUSED = 5
    DOES_NOT_FIT = 4
    CHANGES = 2
    OK = 0


class Stop(Exception):
    """An edge could not do its work: carries the diagnostics to show and the exit code of the command."""

    def __init__(self, report: Report | Diagnostic, exit_code: int = ExitCode.FAILED) -> None:
        self.report = report if isinstance(report, Report) else Report([report])
        self.exit_code = exit_code
        super().__init__("; ".join(f"{d.code}: {d.summary}" for d in self.report))
