"""The bytes of a log, however long it is: its beginning, its end, and how many lines lie between."""

from __future__ import annotations

import stat
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deployc.diagnostics import Report, error

HEAD = 2**20
TAIL = 2**24
_CHUNK = 2**18
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""What `>` of PowerShell writes."""


@dataclass(frozen=True, slots=True)
class Window:
    """`tail` is "" where `head` is all of it; its first line has the number `tail_line`."""

    name: str
    size: int  # bytes of the whole
    head: str
    tail: str = ""
    tail_line: int = 0


def opened(path: Path) -> tuple[Window | None, Report]:
    """Of a file, a pipe, or `-`, the standard input. DC100 where it cannot be read."""
    try:
        if str(path) == "-":
            return window(sys.stdin.buffer, "standard input"), Report()
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise OSError(None, "it is a folder or a device")
        with path.open("rb") as stream:
            return window(stream, str(path)), Report()
    except (OSError, ValueError) as wrong:
        why = getattr(wrong, "strerror", None) or str(wrong)
        fix = "name the file that holds what the engine printed: `docker logs NAME > engine.log 2>&1`"
        return None, Report([error("DC100", "the file cannot be read", f"{path}: {why[:1].lower()}{why[1:]}.", fix)])


def window(stream: IO[bytes], name: str) -> Window:
    """Read to the end, keeping the first MiB and the last 16 MiB. Bytes that are no text become U+FFFD."""
    head, parts = stream.read(HEAD), deque[bytes]()
    size, kept, lines = len(head), 0, head.count(b"\n")  # `kept` bytes are in `parts`, `lines` breaks before them
    while chunk := stream.read(_CHUNK):
        parts.append(chunk)
        kept, size = kept + len(chunk), size + len(chunk)
        while kept - len(parts[0]) >= TAIL:
            gone = parts.popleft()
            kept, lines = kept - len(gone), lines + gone.count(b"\n")
    encoding = _UTF16.get(head[:2], "utf-8")
    if encoding != "utf-8" and (size - kept) % 2 and parts:
        parts[0] = parts[0][1:]
        kept -= 1
    if size - kept <= HEAD:  # nothing is missing between the two
        return Window(name, size, b"".join((head, *parts)).decode(encoding, "replace"))
    return Window(name, size, head.decode(encoding, "replace"), b"".join(parts).decode(encoding, "replace"), lines + 1)
