"""The lines of a log without what others put before and between them: colours, containers' names, times, processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from deployc.measure.doctor.log.window import Window

MOST = 100_000
"""Lines that are read at the end of a log, and a tenth of them at its beginning."""
LONGEST = 2**14
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
_BEFORE = (
    re.compile(r"(?:> ?){1,3}"),  # as people quote it
    re.compile(r"[\w.-]{1,80} {0,40}\| ?"),  # docker compose
    re.compile(r"\[pod/[^\]\s]{1,200}\] "),  # kubectl logs --prefix
    re.compile(
        r"\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?\]? (?:(?:stdout|stderr) [FP] )?"
    ),  # docker -t
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:\S{1,100} )?[\w.@-]{1,80}(?:\[\d{1,9}\])?: "),  # journald
    re.compile(r"\[rank\d{1,4}\]: ?"),  # torch, of several ranks
)
_PROCESS = re.compile(r"\((\w{1,40})(?: [\w=]{1,30}){0,3}(?: ?pid=\d{1,9})(?:, ip=[\w.:]{1,60})?\) ?")
_LEVEL = re.compile(  # vLLM's, older ones without the first bracket; uvicorn's
    r"(?:\[?(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})? \[?[^\]\[]{1,120}\] ?"
    r"|(DEBUG|INFO|WARNING|ERROR|CRITICAL): {0,8})"
)


@dataclass(frozen=True, slots=True)
class Line:
    """`raw` has no control characters; the engine's own words are `raw[start:]`."""

    number: int  # from 1, in the whole log
    level: str  # "ERROR" …; "" where the line has none, as lines of a traceback
    process: str  # "EngineCore" …, "" where it is not said
    raw: str
    start: int

    @property
    def text(self) -> str:
        """The engine's own words."""
        return self.raw[self.start :]


def lines(window: Window) -> tuple[Line, ...]:
    """Those of beginning and end in order; a progress bar's steps are lines of one number."""
    head, tail = window.head.split("\n"), window.tail.split("\n") if window.tail else []
    numbered = list(enumerate(head, 1))
    if tail:
        numbered = numbered[: MOST // 10] + list(enumerate(tail, window.tail_line))[-MOST:]
    elif len(numbered) > MOST + MOST // 10:
        numbered = numbered[: MOST // 10] + numbered[-MOST:]
    return tuple(line for number, text in numbered for line in _of(number, text))


def all_read(window: Window) -> bool:
    """Whether no line was left out."""
    return not window.tail and window.head.count("\n") < MOST + MOST // 10


def _of(number: int, text: str) -> Iterator[Line]:
    if text.startswith('{"log":'):  # Docker's own file of a container
        text = _logged(text)
    for part in text.rstrip("\r").split("\r")[-50:]:
        raw = _CONTROL.sub("", part[:LONGEST]).rstrip()
        if raw:
            yield _line(number, raw)


def _line(number: int, raw: str) -> Line:
    start = 0
    for shape in _BEFORE:
        if before := shape.match(raw, start):
            start = before.end()
    process = _PROCESS.match(raw, start)
    start = process.end() if process else start
    level = _LEVEL.match(raw, start)
    start = level.end() if level else start
    return Line(number, (level[1] or level[2]) if level else "", process[1] if process else "", raw, start)


def _logged(text: str) -> str:
    try:
        return str(json.loads(text[: 4 * LONGEST])["log"]).rstrip("\n")
    except (ValueError, KeyError, TypeError, RecursionError):
        return text
