"""A process of ours in another interpreter: a job as one JSON line on standard input, events as JSON lines out.

Events: `ready` {…}, `progress` {phase, done, total, item, unit}, `error` {diagnostic}, `done` {…}. It ends when
standard input closes (whoever started it is gone), and on SIGINT and SIGTERM, with nothing half-written left. Only the
standard library is imported here; what `run` needs is its module's matter.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from deployc.build import faults
from deployc.facts.faults import Fault

Job = Mapping[str, Any]


class Interrupted(BaseException):
    """SIGINT, SIGTERM, or the one who started this process is gone."""


class Events:
    """The way back; `progress` at most 20 times a second."""

    def __init__(self, descriptor: int) -> None:
        self._out = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **values: Any) -> None:
        """One event, at once."""
        try:
            self._out.write(json.dumps({"event": event, **values}) + "\n")
            self._out.flush()
        except BrokenPipeError:
            raise Interrupted from None

    def progress(self, phase: str, done: int, total: int, item: str, unit: str = "bytes") -> None:
        """How far it is; `unit` as of `Progress`."""
        if done >= total or time.monotonic() - self._last > 0.05:
            self._last = time.monotonic()
            self.send("progress", phase=phase, done=done, total=total, item=item, unit=unit)


def serve(run: Callable[[Job, Events], None]) -> None:
    """Run one job and exit: 0 done, 1 an error event was sent, 130 interrupted.

    `run` sends `ready` and `done` itself; a Fault or OSError that it raises becomes an error event.
    """
    events = Events(os.dup(1))
    os.dup2(2, 1)  # whatever a library prints is no event
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    code = 1
    try:
        job = json.loads(sys.stdin.readline())
        threading.Thread(target=_watch, daemon=True).start()
        run(job, events)
        code = 0
    except Interrupted:
        code = 130
    except Fault as fault:
        events.send("error", diagnostic=asdict(fault.diagnostic))
    except OSError as wrong:
        what, reason = str(wrong.filename or job["into"]), wrong.strerror or str(wrong)
        diagnostic = (faults.disk_full if wrong.errno in faults.FULL else faults.no_access)(what, reason)
        events.send("error", diagnostic=asdict(diagnostic))
    sys.stderr.flush()
    os._exit(code)  # the watching thread is blocked in a read that only the other side ends


def _interrupt(*_: object) -> NoReturn:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # cleaning up is short and is not to be cut off
    raise Interrupted


def _watch() -> None:
    """Wait for the end of standard input. One more SIGTERM to oneself interrupts the main thread at its next step."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
