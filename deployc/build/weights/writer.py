"""Writing one safetensors file: under a temporary name, hashed on the way, synced, renamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from deployc.build.weights.safetensors_file import layout, sha256, sync_folder
from deployc.types.groups import Tensor

HELD = 64 * 2**20
"""Bytes that may wait in memory for those before them to be hashed; past that the file is read again in the end."""


class Writer:
    """A file of its full size from the start; `commit` gives it its name. A context manager.

    Leaving the context without `commit` removes it. Raises OSError (ENOSPC …) already when it is made.
    """

    def __init__(self, path: Path, tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.partial")
        header, self.slots, self.size = layout(tensors, metadata)
        self._fd = os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._committed = False
        self._digest, self._hashed = hashlib.sha256(), 0
        self._waiting: dict[int, bytes | bytearray | memoryview] = {}
        self._held = 0
        try:
            os.posix_fallocate(self._fd, 0, self.size)  # a full disk is met now, not after an hour of work
            self.write(0, header)
        except BaseException:
            self.close()
            raise

    def write(self, begin: int, content: bytes | bytearray | memoryview) -> None:
        """Put all of `content` at `begin`, bytes from the start of the file; every byte is written once."""
        at = 0
        with memoryview(content) as view:
            while at < len(content):
                at += os.pwrite(self._fd, view[at:], begin + at)
        if begin == self._hashed:
            self._hash(content)
            while (next_ := self._waiting.pop(self._hashed, None)) is not None:
                self._held -= len(next_)
                self._hash(next_)
        elif self._held + len(content) <= HELD:
            self._waiting[begin] = content
            self._held += len(content)
        else:
            self._waiting.clear()  # what is lost here is read again by `commit`
            self._held = 0

    def commit(self) -> str:
        """Sync, rename; returns the sha256 of the whole file, 64 hex digits."""
        os.fsync(self._fd)
        digest = self._digest.hexdigest() if self._hashed == self.size else sha256(self.temporary)
        self.temporary.replace(self.path)
        self._committed = True
        sync_folder(self.path.parent)
        return digest

    def _hash(self, content: bytes | bytearray | memoryview) -> None:
        self._digest.update(content)
        self._hashed += len(content)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; a file that was not committed is removed."""
        os.close(self._fd)
        if not self._committed:
            self.temporary.unlink(missing_ok=True)
