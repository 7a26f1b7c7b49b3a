"""How far a build is, on standard error: a bar on a terminal, plain lines elsewhere, JSON Lines for programs.

All three say how much is done, at which speed, and how long the rest takes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from deployc.cli.options import Style
from deployc.cli.show import color, write
from deployc.types.manifest import Progress
from deployc.units import show_bytes, show_seconds

Watch = Callable[[Progress], None]
Clock = Callable[[], float]
SAYS = {"wait": "waiting for another build", "download": "download", "check": "check adapter", "merge": "merge by peft",
        "write": "write weights", "calibrate": "calibrate", "measure": "measure quality"}  # fmt: skip
_BETWEEN_LINES, _BETWEEN_OBJECTS = 10.0, 1.0  # seconds


@contextmanager
def progress(style: Style = Style.AUTO, stream: TextIO | None = None) -> Iterator[Watch]:
    """A callback for `build`."""
    stream = stream or sys.stderr
    match style.on(stream):
        case Style.NONE:
            yield lambda _: None
        case Style.BAR:
            with _bar(stream) as watch:
                yield watch
        case Style.JSON:
            yield Objects(stream)
        case _:
            yield Lines(stream)


class Pace:
    """The speed of the phase at hand, in its unit a second. What was done when the phase began is not counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._phase = ""
        self._begun, self._first = 0.0, 0
        self.speed: float | None = None
        self.left: float | None = None  # seconds

    def take(self, now: Progress) -> bool:
        """Learn from one event; whether it is the first of its phase."""
        at = self._clock()
        begins = now.phase != self._phase
        if begins:
            self._phase, self._begun, self._first = now.phase, at, now.done
        moved, seconds = now.done - self._first, at - self._begun
        self.speed = moved / seconds if moved > 0 and seconds > 0 else None
        self.left = (now.total - now.done) / self.speed if self.speed and now.done < now.total else None
        return begins


class _Spoken:
    """Says the start and the end of a phase, and something every few seconds between."""

    between = _BETWEEN_LINES

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._stream, self._clock, self._pace = stream, clock, Pace(clock)
        self._said = 0.0

    def __call__(self, now: Progress) -> None:
        """Say it, if it is time."""
        begins = self._pace.take(now)
        at = self._clock()
        if begins or now.done >= now.total or at - self._said >= self.between:
            self._said = at
            write(self._stream, self.said(now, self._pace) + "\n")

    def said(self, now: Progress, pace: Pace) -> str:
        """One event as one line."""
        raise NotImplementedError


class Lines(_Spoken):
    """Plain lines for people who read a log."""

    def said(self, now: Progress, pace: Pace) -> str:
        """ "write weights: 1.00 GiB of 2.00 GiB, 300 MiB/s, 3.4 s left"."""
        parts = [part for part in (amount(now), _speed(now, pace), _left(pace)) if part]
        return SAYS[now.phase] + (f": {', '.join(parts)}" if parts else "")


class Objects(_Spoken):
    """One JSON object a line, for programs."""

    between = _BETWEEN_OBJECTS

    def said(self, now: Progress, pace: Pace) -> str:
        """As docs/reference.md says; what is not known is null."""
        speed = round(pace.speed) if pace.speed is not None and now.unit == "bytes" else None
        left = None if pace.left is None else round(pace.left, 1)
        return json_line(now.phase, now.done, now.total or None, now.unit, now.item, speed, left)


def json_line(
    phase: str,
    done: float,
    total: float | None,
    unit: str | None,
    item: str,
    bytes_per_second: int | None = None,
    seconds_left: float | None = None,
) -> str:
    """One object of `--progress json`."""
    return json.dumps(
        {"phase": phase, "done": done, "total": total, "unit": unit, "bytes_per_second": bytes_per_second,
         "seconds_left": seconds_left, "item": item}
    )  # fmt: skip


def amount(now: Progress) -> str:
    """ "1.00 GiB of 2.00 GiB", "3 of 32 layers"; "" where it is not known."""
    if not now.total:
        return ""
    if now.unit == "bytes":
        return f"{show_bytes(now.done)} of {show_bytes(now.total)}"
    return f"{now.done:,} of {now.total:,} {now.unit}"


def _speed(now: Progress, pace: Pace) -> str:
    return f"{show_bytes(pace.speed)}/s" if pace.speed is not None and now.unit == "bytes" else ""


def _left(pace: Pace) -> str:
    return "" if pace.left is None else f"{show_seconds(pace.left)} left"


@contextmanager
def _bar(stream: TextIO) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    shown = [TextColumn(f"{{task.fields[words][{name}]}}") for name in ("amount", "speed", "left")]
    tasks = {}
    console = Console(file=stream, no_color=not color(stream), force_terminal=True)
    with Bar(TextColumn("{task.description}"), BarColumn(), *shown, console=console) as bar:
        pace = Pace(time.monotonic)

        def watch(now: Progress) -> None:
            pace.take(now)
            words = {"amount": amount(now), "speed": _speed(now, pace), "left": _left(pace)}
            if now.phase not in tasks:
                tasks[now.phase] = bar.add_task(SAYS[now.phase], total=now.total or None, words=words)
            bar.update(tasks[now.phase], completed=now.done, total=now.total or None, words=words)

        yield watch
