"""Writing one safetensors file: under a temporary name, hashed on the way, past the page cache, synced, renamed.

What is written in order goes to the disk in large aligned pieces with O_DIRECT, while the next piece is hashed: a copy
through the page cache takes more time of the processor than all the arithmetic of a merge. File systems without
O_DIRECT get the same pieces the usual way.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from deployc.build.weights.safetensors_file import layout, sha256, sync
from deployc.types.groups import Tensor

PIECE = 8 * 2**20
"""Bytes handed to the disk at once."""
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
        self._disk = ThreadPoolExecutor(1)
        self._pieces = [mmap.mmap(-1, PIECE), mmap.mmap(-1, PIECE)]  # page-aligned, as O_DIRECT wants them
        self._fill = 0  # bytes in the first piece
        self._under_way: Future[None] | None = None
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
        self._next += len(content)
        with memoryview(content) as view:
            at = 0
            while at < len(content):
                take = min(PIECE - self._fill, len(content) - at)
                self._pieces[0][self._fill : self._fill + take] = view[at : at + take]
                self._fill, at = self._fill + take, at + take
                if self._fill == PIECE:
                    self._hand_on(self._next - len(content) + at - PIECE)

    def _hand_on(self, begin: int) -> None:
        """The full piece to the disk, once the one before it is there."""
        self._wait()
        full, empty = self._pieces
        self._under_way = self._disk.submit(self._put, full, begin)
        self._pieces, self._fill = [empty, full], 0

    def _wait(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None

    def _scatter(self) -> None:
        """Write what waits, wherever it belongs; from now on nothing waits."""
        if not self._in_order:
            return
        self._in_order = False
        self._wait()
        _through_the_cache(self._fd)
        with memoryview(self._pieces[0]) as piece, piece[: self._fill] as rest:
            self._put(rest, self._next - self._fill)
        for begin, content in self._waiting.items():
            self._put(content, begin)
        self._waiting.clear()

    def _put(self, content: Content | mmap.mmap, begin: int) -> None:
        at = 0
        with memoryview(content) as view:
            while at < len(view):
                try:
                    at += os.pwrite(self._fd, view[at:], begin + at)
                except OSError as wrong:
                    if wrong.errno != errno.EINVAL or not _through_the_cache(self._fd):
                        raise

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


def _through_the_cache(descriptor: int) -> bool:
    """Take O_DIRECT off; False where it is not on."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not flags & os.O_DIRECT:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
    return True
