"""Which shards of an interrupted build are finished, so that the next one goes on after them.

One JSON line a shard, appended and synced after the shard was renamed; the first line says what made them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deployc.build.weights.safetensors_file import sha256

NAME = ".journal"


class Journal:
    """The journal of a folder. With another `identity` (tool, torch, threads) than before, nothing counts as done."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._path = folder / NAME
        self._folder = folder
        lines = list(self._read())
        if not lines or lines[0] != identity:
            self._path.unlink(missing_ok=True)
            lines = [dict(identity)]
            self._append(lines[0])
        self._done = {str(line.get("shard")): line for line in lines[1:]}

    def finished(self, shard: str, source: os.stat_result) -> dict[str, Any] | None:
        """The shard's line, if its file still is what was written and its input what was read."""
        line, path = self._done.get(shard), self._folder / shard
        if line is None or not path.is_file() or line.get("source") != [source.st_size, source.st_mtime_ns]:
            return None
        return line if sha256(path) == line.get("sha256") else None

    def add(self, shard: str, source: os.stat_result, **content: Any) -> dict[str, Any]:
        """Note a finished shard; returns its line."""
        line = {"shard": shard, "source": [source.st_size, source.st_mtime_ns], **content}
        self._append(line)
        return line

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            if file.tell() and not self._path.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # a line torn by a crash stays torn and is skipped
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> Iterator[dict[str, Any]]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        for text in content.splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line
