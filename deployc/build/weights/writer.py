"""Writing one safetensors file: under a temporary name, hashed on the way, past the page cache, synced, renamed.

What is written in order goes to the disk in large aligned pieces with O_DIRECT, while the next piece is hashed: a copy
through the page cache takes more time of the processor than all the arithmetic of a merge. Content that lies in memory
as it will in the file (`tensors.laid`) goes there as it is, all but its ends; the rest is gathered into pieces. File
systems without O_DIRECT get the same the usual way.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from deployc.build.weights.safetensors_file import layout, sha256, sync
from deployc.types.groups import Tensor

PIECE = 4 * 2**20
"""Bytes gathered for the disk."""
SENT = 4
"""Writes that may be on their way to the disk."""
ALIGNED = 4096
"""What O_DIRECT wants of places in memory and file, at most."""
DIRECT = 2**18
"""Bytes from which on content is written from where it lies: below, a write costs more than a copy."""
HELD = 64 * 2**20
"""Bytes that may wait in memory for those before them; past that all is written where it belongs, as it comes."""

Content = bytes | bytearray | memoryview


class Writer:
    """A file of its full size from the start; `commit` gives it its name. A context manager.

    Leaving the context without `commit` removes it. Raises OSError (ENOSPC …) already when it is made.
    """

    def __init__(self, path: Path, tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.partial")
        header, self.slots, self.size = layout(tensors, metadata)
        self._fd = _opened(self.temporary)
        self._committed = False
        self._digest, self._next = hashlib.sha256(), 0
        self._in_order = True
        self._waiting: dict[int, Content] = {}
        self._held = 0
        self._disk = ThreadPoolExecutor(2)
        self._pieces = deque(mmap.mmap(-1, PIECE) for _ in range(SENT + 1))  # page-aligned, as O_DIRECT wants them
        self._fill = 0  # bytes in the first piece
        self._sent: deque[Future[None]] = deque()
        try:
            os.posix_fallocate(self._fd, 0, self.size)  # a full disk is met now, not after an hour of work
            self.write(0, header)
        except BaseException:
            self.close()
            raise

    def write(self, begin: int, content: Content) -> None:
        """Put all of `content` at `begin`, bytes from the start of the file; every byte is written once."""
        if not self._in_order:
            self._put(content, begin)
        elif begin == self._next:
            self._append(content)
            while (following := self._waiting.pop(self._next, None)) is not None:
                self._held -= len(following)
                self._append(following)
        elif self._held + len(content) <= HELD:
            self._waiting[begin] = content
            self._held += len(content)
        else:
            self._scatter()
            self._put(content, begin)

    def commit(self) -> str:
        """Sync, rename; returns the sha256 of the whole file, 64 hex digits."""
        self._scatter()
        os.fsync(self._fd)
        digest = self._digest.hexdigest() if self._next == self.size else sha256(self.temporary)
        self.temporary.replace(self.path)
        self._committed = True
        sync(self.path.parent)
        return digest

    def close(self) -> None:
        """Close it; a file that was not committed is removed."""
        self._disk.shutdown()
        os.close(self._fd)
        self._pieces.clear()
        if not self._committed:
            self.temporary.unlink(missing_ok=True)

    def _append(self, content: Content) -> None:
        self._digest.update(content)
        with memoryview(content) as view:
            head = -self._next % ALIGNED if self._lies_as_in_the_file(view) else len(view)
            rest = self._gathered(view, min(head, len(view)))
            if whole := len(rest) // ALIGNED * ALIGNED:
                self._hand_on()
                self._send(rest[:whole], self._next)
                self._next += whole
            self._gathered(rest[whole:], len(rest) - whole)

    def _lies_as_in_the_file(self, view: memoryview) -> bool:
        """Whether it can go to the disk from where it is, and is worth a write of its own."""
        if len(view) < DIRECT or view.readonly:
            return False
        return (ctypes.addressof(ctypes.c_ubyte.from_buffer(view)) - self._next) % ALIGNED == 0

    def _gathered(self, view: memoryview, size: int) -> memoryview:
        """The first `size` bytes into pieces; what is left of the view."""
        at = 0
        while at < size:
            take = min(PIECE - self._fill, size - at)
            self._pieces[0][self._fill : self._fill + take] = view[at : at + take]
            self._fill, self._next, at = self._fill + take, self._next + take, at + take
            if self._fill == PIECE:
                self._hand_on()
        return view[size:]

    def _hand_on(self) -> None:
        """What is gathered, a multiple of `ALIGNED`, to the disk."""
        if self._fill:
            self._send(memoryview(self._pieces[0])[: self._fill], self._next - self._fill)
            self._pieces.rotate(-1)
            self._fill = 0

    def _send(self, content: memoryview, begin: int) -> None:
        """To the disk, behind what is on the way there; no piece is filled again while it is."""
        self._wait(SENT - 1)
        self._sent.append(self._disk.submit(self._put, content, begin))

    def _wait(self, most: int) -> None:
        while len(self._sent) > most:
            self._sent.popleft().result()

    def _scatter(self) -> None:
        """Write what waits, wherever it belongs; from now on nothing waits."""
        if not self._in_order:
            return
        self._in_order = False
        self._wait(0)
        _through_the_cache(self._fd)
        with memoryview(self._pieces[0]) as piece, piece[: self._fill] as rest:
            self._put(rest, self._next - self._fill)
        for begin, content in self._waiting.items():
            self._put(content, begin)
        self._waiting.clear()

    def _put(self, content: Content, begin: int) -> None:
        at, past_the_cache = 0, True
        with memoryview(content) as view:
            while at < len(view):
                try:
                    at += os.pwrite(self._fd, view[at:], begin + at)
                except OSError as wrong:
                    if wrong.errno != errno.EINVAL or not past_the_cache:
                        raise
                    _through_the_cache(self._fd)
                    past_the_cache = False

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_DIRECT, 0o644)
    except OSError as wrong:
        if wrong.errno != errno.EINVAL:
            raise
        return os.open(path, flags, 0o644)


def _through_the_cache(descriptor: int) -> None:
    """Take O_DIRECT off, if it is on."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) & ~os.O_DIRECT)
