"""How far a build is: a bar with bytes, speed and time left on a terminal, plain lines elsewhere, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from deployc.cli.show import color
from deployc.types.manifest import Progress
from deployc.units import show_bytes, show_seconds

Watch = Callable[[Progress], None]
SAYS = {"wait": "waiting for another build", "download": "download", "check": "check adapter", "merge": "merge by peft",
        "write": "write weights", "calibrate": "calibrate", "measure": "measure quality"}  # fmt: skip
_BETWEEN = 10.0  # seconds between two plain lines


@contextmanager
def progress(quiet: bool = False, stream: TextIO | None = None) -> Iterator[Watch]:
    """A callback for `build`; with `quiet` it shows nothing."""
    stream = stream or sys.stderr
    if quiet:
        yield lambda _: None
    elif stream.isatty():
        with _bar(stream) as watch:
            yield watch
    else:
        yield Lines(stream)


class Lines:
    """One line at the start and end of a phase, and one every 10 s between."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._phase = ""
        self._begun = self._said = 0.0
        self._first = 0  # bytes that were there when the phase began

    def __call__(self, now: Progress) -> None:
        """Say it, if it is time."""
        at = self._clock()
        if now.phase != self._phase:
            self._phase, self._begun, self._first = now.phase, at, now.done
        elif now.done < now.total and at - self._said < _BETWEEN:
            return
        self._said = at
        self._stream.write(f"{SAYS[now.phase]}{_amount(now)}{self._left(now, at)}\n")
        self._stream.flush()

    def _left(self, now: Progress, at: float) -> str:
        moved, seconds = now.done - self._first, at - self._begun
        if moved <= 0 or seconds <= 0:
            return ""
        speed = moved / seconds
        left = f", {show_seconds((now.total - now.done) / speed)} left" if now.done < now.total else ""
        return f", {show_bytes(speed)}/s{left}"


def _amount(now: Progress) -> str:
    return f": {show_bytes(now.done)} of {show_bytes(now.total)}" if now.total else ""


@contextmanager
def _bar(stream: TextIO) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True),
               TransferSpeedColumn(), TimeRemainingColumn())  # fmt: skip
    tasks = {}
    with Bar(*columns, console=Console(file=stream, no_color=not color(stream))) as bar:

        def watch(now: Progress) -> None:
            if now.phase not in tasks:
                tasks[now.phase] = bar.add_task(SAYS[now.phase], total=now.total or None)
            bar.update(tasks[now.phase], completed=now.done, total=now.total or None)

        yield watch
