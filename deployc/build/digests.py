"""The sha256 of the model's files, taken by the tool itself while the worker reads them: two cores instead of one.

Both read the same bytes, the later one out of the page cache. That nobody wrote to a file in between is told by its
identity, size and times, before the first byte is read on either side and after the last one is on both.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from deployc.build import faults
from deployc.build.weights.safetensors_file import same
from deployc.diagnostics import Stop
from deployc.types.manifest import Content, Progress

PIECE = 4 * 2**20
AHEAD = 4 * 2**30
"""Bytes that it may be before the worker: further ahead, the worker would not find them in memory any more."""


class Digests:
    """A context manager: hashing begins on entering it, and ends with it at the latest."""

    def __init__(self, paths: Sequence[Path], where: str) -> None:
        self._paths, self._where = list(paths), where
        self._before = {path: path.stat() for path in paths}
        self._total = sum(found.st_size for found in self._before.values())
        self._allowed = float(AHEAD)
        self._moved = threading.Condition()
        self._over = False
        self._wrong: OSError | None = None
        self._found: dict[str, Content] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def watching(self, progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
        """The same, heeding how far the worker is."""

        def watch(now: Progress) -> None:
            if now.phase == "write" and now.total:
                self._allow(self._total * now.done / now.total + AHEAD)
            progress(now)

        return watch

    def contents(self) -> dict[str, Content]:
        """Of every file, once all are read. Raises Stop DC277 where one was written to meanwhile; OSError."""
        self._allow(float("inf"))
        self._thread.join()
        if self._wrong is not None:
            raise self._wrong
        if wrong := [path.name for path in self._paths if not same(self._before[path], path.stat())]:
            raise Stop(faults.changed_inputs(self._where, wrong))
        return self._found

    def _allow(self, upto: float) -> None:
        with self._moved:
            self._allowed = max(self._allowed, upto)
            self._moved.notify()

    def _run(self) -> None:
        read, piece = 0, bytearray(PIECE)
        try:
            for path in self._paths:
                digest, size = hashlib.sha256(), 0
                with path.open("rb", buffering=0) as file:
                    while got := file.readinto(piece):
                        digest.update(memoryview(piece)[:got])
                        read, size = read + got, size + got
                        if not self._go_on(read):
                            return
                self._found[path.name] = Content(size, digest.hexdigest())
        except OSError as wrong:
            self._wrong = wrong

    def _go_on(self, read: int) -> bool:
        """Wait until the worker is near enough; False where it is over."""
        with self._moved:
            self._moved.wait_for(lambda: self._over or read <= self._allowed)
            return not self._over

    def __enter__(self) -> Digests:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._moved:
            self._over = True
            self._moved.notify()
        self._thread.join()
