"""A model or adapter in a local folder.

Small files and adapters are pinned by their whole content. A model's weights are pinned by a sample: hashing 15 GB
would take longer than everything else `plan` does, and a size alone would not see a model that was trained further.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from deployc.facts import faults
from deployc.facts.source import SMALL, Entry, Hub, is_pinned

WHOLE = 2**30
"""Bytes: up to here a file's digest is that of its whole content if it is no model weights file."""
_SPOTS, _SPOT = 64, 4096


class Folder:
    """A folder as a source; `shown` is the source as the deploy.yaml names it."""

    hub: Hub = "folder"
    revision: str | None = None
    gated = False

    def __init__(self, path: Path, shown: str) -> None:
        self.path = path
        self.where = shown
        if not path.is_dir():
            raise faults.no_folder(shown, "it is not a folder." if path.exists() else "it does not exist.")

    def files(self) -> Mapping[str, Entry]:
        """Sizes and digests of the files at the root that `is_pinned` keeps; the others with an empty digest."""
        try:
            sizes = {p.name: p.stat().st_size for p in sorted(self.path.iterdir()) if p.is_file()}
            return {
                name: Entry(size, self._digest(name, size) if is_pinned(name) else "") for name, size in sizes.items()
            }
        except OSError as wrong:
            raise faults.no_folder(self.where, f"{wrong.strerror}: {wrong.filename}.") from None

    def read(self, name: str) -> bytes:
        """A small file whole; Fault DC202 where it is missing, DC203 where it is too large."""
        try:
            with (self.path / name).open("rb") as file:
                content = file.read(SMALL + 1)
        except FileNotFoundError:
            raise faults.missing_file(name, self.where, "Copy the whole model into the folder.") from None
        except OSError as wrong:
            raise faults.no_folder(self.where, f"{name}: {wrong.strerror}.") from None
        if len(content) > SMALL:
            raise faults.bad_json(name, self.where, f"it is larger than {SMALL // 2**20} MiB.")
        return content

    def range(self, name: str, begin: int, end: int) -> bytes:
        """Exactly the bytes [begin, end) of a file; Fault DC204 where the file is shorter."""
        try:
            with (self.path / name).open("rb") as file:
                file.seek(begin)
                content = file.read(end - begin)
        except OSError as wrong:
            raise faults.no_folder(self.where, f"{name}: {wrong.strerror}.") from None
        if len(content) < end - begin:
            raise faults.bad_header(name, self.where, f"it ends after {begin + len(content):,} bytes: it is truncated.")
        return content

    def _digest(self, name: str, size: int) -> str:
        weights = name.endswith(".safetensors") and not name.startswith("adapter_")
        with (self.path / name).open("rb") as file:
            if not weights and size <= WHOLE:
                return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
            digest = hashlib.sha256(str(size).encode())
            for spot in range(_SPOTS):
                digest.update(os.pread(file.fileno(), _SPOT, spot * max(size - _SPOT, 0) // (_SPOTS - 1)))
            return f"sampled:{size}:{digest.hexdigest()}"
