"""One safetensors file: its layout, and reading it by header and `pread`: no mmap, no library.

Format: 8 bytes little-endian length N, N bytes of JSON, the data. Each tensor begins at a multiple of its element, and
the header is padded with spaces to a multiple of 8 bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deployc.facts.headers import INDEX, SINGLE, read_header
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor's place: `begin` and `end` are bytes from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Reader:
    """An open file whose header was checked. Raises Fault DC204 when it is damaged; a context manager."""

    def __init__(self, path: Path, where: str) -> None:
        self.path = path
        self._where = where
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size = os.fstat(self._fd).st_size
            read_header(path.name, self.size, where, lambda _, begin, end: bytes(self.read(begin, end)))
            length = int.from_bytes(self.read(0, 8), "little")
            header = json.loads(bytes(self.read(8, 8 + length)))
        except BaseException:
            os.close(self._fd)
            raise
        self.data = 8 + length
        self.metadata: Mapping[str, str] = header.pop("__metadata__", None) or {}
        slots = [
            Slot(name, e["dtype"], tuple(e["shape"]), *(self.data + at for at in e["data_offsets"]))
            for name, e in header.items()
        ]
        self.slots = sorted(slots, key=lambda slot: (slot.begin, slot.end, slot.name))

    def read(self, begin: int, end: int) -> bytearray:
        """Exactly the bytes [begin, end). Raises Fault DC204 where the file was cut since it was opened."""
        content = bytearray(end - begin)
        with memoryview(content) as view:
            self.fill(view, begin)
        return content

    def fill(self, view: memoryview, begin: int) -> None:
        """Read so many bytes from `begin` on as `view` takes. Raises as `read` does."""
        at = 0
        while at < len(view):
            got = os.preadv(self._fd, [view[at:]], begin + at)
            if got == 0:
                from deployc.facts import faults

                raise faults.bad_header(self.path.name, self._where, f"it ends after {begin + at:,} bytes.")
            at += got

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shards(folder: Path) -> list[str]:
    """A model's files of weights: those of its index, else the one; not the copies in other layouts that some carry."""
    if not (folder / INDEX).is_file():
        return [SINGLE]
    return sorted(set(json.loads((folder / INDEX).read_bytes())["weight_map"].values()))


def layout(tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> tuple[bytes, dict[str, Slot], int]:
    """The header's bytes (length included), each tensor's place, and the size of the whole file in bytes.

    Tensors lie in the order given; where one would not begin at a multiple of its element, all lie by falling element
    size and then by name, as the safetensors library does it.
    """
    ordered = list(tensors)
    if not _aligned(ordered):
        ordered.sort(key=lambda t: (-DTYPE_BYTES[t[1]], t[0]))
    entries: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    at, places = 0, []
    for name, dtype, shape in ordered:
        size = _bytes(dtype, shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        places.append((name, dtype, shape, at, at + size))
        at += size
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    slots = {name: Slot(name, dtype, shape, start + begin, start + end) for name, dtype, shape, begin, end in places}
    return len(text).to_bytes(8, "little") + text, slots, start + at


def sha256(path: Path) -> str:
    """64 hex digits over a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make durable what is in a file; of a folder, the names in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def same(before: os.stat_result, now: os.stat_result) -> bool:
    """Whether a file is the one it was, and nobody wrote to it."""

    def told(found: os.stat_result) -> tuple[int, ...]:
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    return told(before) == told(now)


def _aligned(tensors: Iterable[Tensor]) -> bool:
    at = 0
    for _, dtype, shape in tensors:
        if at % max(1, round(DTYPE_BYTES[dtype])):
            return False
        at += _bytes(dtype, shape)
    return True


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    bits = round(DTYPE_BYTES[dtype] * 8)
    for n in shape:
        bits *= n
    return -(-bits // 8)
