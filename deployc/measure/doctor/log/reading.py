"""What a log says: whose it is, how far the start came, what ended it, and the figures on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from deployc.diagnostics import Span
from deployc.measure.doctor.log.facts import Fact, facts
from deployc.measure.doctor.log.lines import Line, all_read, lines
from deployc.measure.doctor.log.mask import hidden, secrets
from deployc.measure.doctor.log.table import Failure, Table
from deployc.measure.doctor.log.window import Window

Outcome = Literal["failed", "died", "serving", "unfinished", "other", "empty"]
"""`died` served first; `other` is no log of vLLM's."""

_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})
_FRAME = re.compile(r"\s*(?:File \"|\^|~|\.\.\.|raise |return |await |with |async with )")
_RAISED = re.compile(r"^(?:[\w.]{1,120}(?:Error|Exception|Interrupt|Exit)\b|\s*Value error, |.{0,60}error: )")
_ASKED = re.compile(r"\bTraceback \(most recent call last\)")


@dataclass(frozen=True, slots=True)
class Found:
    """A row of the table and where its text stands."""

    failure: Failure
    text: str  # the line, masked
    at: Span


@dataclass(frozen=True, slots=True)
class Reading:
    """Places are lines of the log; no text in it holds a secret. `failures` begin with the one that explains most."""

    window: Window
    whole: bool  # no line was left out
    lines: int
    outcome: Outcome
    server: str  # "vLLM", the name of another one, or ""
    starts: int  # how many of them the log holds, as far as they can be told apart
    failures: tuple[Found, ...]
    facts: tuple[Fact, ...]
    last: tuple[Span, ...]  # the last lines that speak of an error, else the last lines
    exposed: tuple[Span, ...]  # lines that spell out a secret
    stopped: Span | None = None  # where it was told to end


def read(window: Window, known: Table) -> Reading:
    """Look at the last start of the log, and at all of it for what it gives away."""
    found = lines(window)
    given = {line: told for line in found if (told := secrets(line.raw))}
    hide = tuple(sorted({word for told in given.values() for word in told}, key=len, reverse=True))[:200]
    begins = _starts(found, known)
    last = found[begins[-1] :] if begins else found
    served = next((n for n, line in enumerate(last) if known.serving.search(line.text)), None)
    stop = next((n for n, line in enumerate(last) if known.stopped.search(line.text)), None)
    stopped = None if stop is None else _span(last[stop], window.name, hide)
    last = last[:stop]  # what goes wrong after that is no fault
    failures = tuple(_failures(last, served, known, window.name, hide))
    outcome, server = _outcome(found, last, served, failures, known)
    counted = max([1, *(line.number for line in found)])
    return Reading(
        window, all_read(window), counted, outcome, server, len(begins), failures,
        tuple(facts(last, known.figures, hide)),
        tuple(_span(line, window.name, hide) for line in _last(last, known)),
        tuple(_span(line, window.name, hide) for line in given), stopped,
    )  # fmt: skip


def _starts(found: Sequence[Line], known: Table) -> list[int]:
    """Where starts begin. Several servers of one start say the same words: a new one begins after a fault or an end."""
    begins: list[int] = []
    over = True
    for n, line in enumerate(found):
        if over and known.start.search(line.text):
            begins.append(n if begins else 0)
            over = False
        elif not over:
            over = line.level == "ERROR" or bool(_ASKED.search(line.text) or known.serving.search(line.text))
    return begins


def _failures(
    last: Sequence[Line], served: int | None, known: Table, file: str, hide: Sequence[str]
) -> Iterator[Found]:
    """One for each row that matches, in the table's order; on the line that raises it, where there is one."""
    lines = [(n, line) for n, line in enumerate(last) if line.level not in _QUIET and not _FRAME.match(line.text)]
    died = any(known.died.search(line.text) for _, line in lines)
    told: set[int] = set()
    for row in known.failures:
        asked = [
            (line, match)
            for n, line in lines
            if (served is None or (n > served and (row.serving or died))) and (match := row.pattern.search(line.text))
        ]
        if asked:
            line, match = next(((line, match) for line, match in asked if _RAISED.match(line.text)), asked[0])
            if line.number in told:
                continue
            told.add(line.number)
            yield Found(row, hidden(line.text.strip(), hide), _span(line, file, hide, match.start(), match.end()))


def _outcome(
    found: Sequence[Line], last: Sequence[Line], served: int | None, failures: Sequence[Found], known: Table
) -> tuple[Outcome, str]:
    looked = [*found[:3000], *found[3000:][-3000:]]
    ours = sum(bool(known.vllm.search(line.raw)) for line in looked)
    votes = {name: sum(bool(shape.search(line.raw)) for line in looked) for name, shape in known.others.items()}
    most = max(votes, key=lambda name: votes[name])
    if votes[most] > ours:
        return "other", most
    if not found:
        return "empty", ""
    if not ours and not any(one.failure.names_vllm for one in failures):
        return "other", ""
    server = "vLLM" if ours else ""
    if served is not None:
        died = any(known.died.search(line.text) for line in last[served:])
        return ("died" if died else "serving"), server
    trouble = bool(failures) or any(
        line.level in ("ERROR", "CRITICAL") or _ASKED.search(line.text) or known.follows.search(line.text)
        for line in last
        if line.level not in _QUIET
    )
    return ("failed" if trouble else "unfinished"), server


def _last(last: Sequence[Line], known: Table) -> list[Line]:
    """At most five that name an error, rather those that say what it is; else the last five."""
    raised = [line for line in last if line.level not in _QUIET and _RAISED.match(line.text)]
    causes = [line for line in raised if not known.follows.search(line.text)]
    once = {line.text: line for line in reversed(causes or raised)}
    return sorted(list(once.values())[:5], key=lambda line: line.number) or list(last[-5:])


def _span(line: Line, file: str, hide: Sequence[str], start: int | None = None, end: int | None = None) -> Span:
    shown = hidden(line.raw, hide)
    begin = line.start if start is None else line.start + start
    stop = len(shown) if end is None else line.start + end
    return Span(file, line.number, begin + 1, max(begin + 2, stop + 1), shown)
