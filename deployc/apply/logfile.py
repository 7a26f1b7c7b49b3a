"""The engine's log: bounded on disk, secrets masked before they are written, control characters shown, not obeyed."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

LOG_BYTES = 16 * 2**20
"""Where a log is rotated: it and its one predecessor hold at most twice this."""

STARTING = "starting"
"""The supervisor's line before each start of the engine: what follows it is that start's."""

_LONGEST_LINE = 2**16
_MASK = b"********"
_SHORTEST_SECRET = 4  # masking shorter ones would only tear holes into ordinary words
_OWN = re.compile(r"\[deployc \d{4}-\d\d-\d\dT[\d:]+Z\] ")
_BREAK = re.compile(rb"\r\n|\n|\r")  # progress bars end their lines with a carriage return alone
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


class LogFile:
    """Takes the engine's output as it comes and writes whole lines, masked; a full disk loses lines, not the engine."""

    def __init__(self, path: Path, secrets: Iterable[str], limit: int = LOG_BYTES) -> None:
        self.path = path
        self._limit = limit
        self._secrets = sorted((s.encode() for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._rest = b""
        self._file = self._open()

    def write(self, data: bytes) -> None:
        """Add output; what follows the last line break waits for its end."""
        *lines, self._rest = _BREAK.split(self._rest + data)
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        self._put(lines)

    def say(self, text: str) -> None:
        """Add a line of the supervisor's own, with its time."""
        self.flush()
        self._put([f"[deployc {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}] {text}".encode()])

    def flush(self) -> None:
        """Write the unfinished line, at the end of the output."""
        if self._rest:
            self._put([self._rest])
            self._rest = b""

    def _put(self, lines: list[bytes]) -> None:
        text = b"".join(line + b"\n" for line in lines)
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        try:
            if self._file.tell() and self._file.tell() + len(text) > self._limit:
                self._file.close()
                self.path.replace(self.path.with_suffix(".log.1"))
                self._file = self._open()
            self._file.write(text)
        except OSError:
            return  # the disk is full: the engine must not stand still for its log

    def _open(self) -> IO[bytes]:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        file = os.fdopen(descriptor, "ab", buffering=0)
        file.seek(0, os.SEEK_END)
        return file


def printable(text: str) -> str:
    """Text that can neither move the cursor nor recolour the terminal; colours are dropped, the rest is escaped."""
    return _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), _COLOR.sub("", text))


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a log, printable, reaching back into its rotated predecessor; [] where there is none."""
    last: deque[str] = deque(maxlen=lines)
    for part in (path.with_suffix(".log.1"), path):
        if part.exists():
            with part.open(encoding="utf-8", errors="replace") as file:
                last.extend(printable(line.rstrip("\n")) for line in file)
    return list(last)


def since_start(path: Path, lines: int) -> list[str]:
    """The last lines of the engine's latest start alone."""
    last = tail(path, lines)
    begins = [i for i, line in enumerate(last) if _OWN.match(line) and f"] {STARTING} " in line]
    return last[begins[-1] + 1 :] if begins else last


def follow(
    path: Path, lines: int, ended: Callable[[], bool], pause: Callable[[], None] = lambda: time.sleep(0.2)
) -> Iterator[str]:
    """The last lines, then new ones as they are written, through rotations, until `ended` says there are no more."""
    file = path.open("rb") if path.exists() else None
    if file is not None:
        file.seek(0, os.SEEK_END)
    yield from tail(path, lines)
    rest = b""
    try:
        while True:
            over = ended()
            while file is not None or path.exists():
                file = file or path.open("rb")
                *whole, rest = (rest + file.read()).split(b"\n")
                yield from (printable(line.decode(errors="replace")) for line in whole)
                if not path.exists() or path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    break
                file.close()  # it was rotated, and is read to its end
                file = None
            if over:
                return
            pause()
    finally:
        if file is not None:
            file.close()
