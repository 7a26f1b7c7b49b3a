"""One safetensors file, read by header and `pread`, written by header and `pwrite`: no mmap, no library.

Format: 8 bytes little-endian length N, N bytes of JSON, the data. As the safetensors library does it, tensors are laid
out by falling element size and then by name, so that each begins at a multiple of its element, and the header is
padded with spaces to a multiple of 8 bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deployc.facts.headers import read_header
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor

CHUNK = 16 * 2**20
"""Bytes moved at once where a tensor is only copied."""


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
        at = 0
        with memoryview(content) as view:
            while at < len(content):
                got = os.preadv(self._fd, [view[at:]], begin + at)
                if got == 0:
                    from deployc.facts import faults

                    raise faults.bad_header(self.path.name, self._where, f"it ends after {begin + at:,} bytes.")
                at += got
        return content

    def chunks(self, begin: int, end: int) -> Iterator[tuple[int, bytearray]]:
        """Offset and bytes of the range, CHUNK bytes at a time."""
        for at in range(begin, end, CHUNK):
            yield at, self.read(at, min(at + CHUNK, end))

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Writer:
    """A file made under a temporary name, of its full size from the start, and renamed by `commit`.

    Leaving the context without `commit` removes it. Raises OSError (ENOSPC …) already when it is made.
    """

    def __init__(self, path: Path, tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.partial")
        header, self.slots, self.size = layout(tensors, metadata)
        self._fd = os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._committed = False
        try:
            os.posix_fallocate(self._fd, 0, self.size)  # a full disk is met now, not after an hour of work
            self.write(0, header)
        except BaseException:
            self.__exit__()
            raise

    def write(self, begin: int, content: bytes | bytearray) -> None:
        """Put all of `content` at `begin`, bytes from the start of the file."""
        at = 0
        with memoryview(content) as view:
            while at < len(content):
                at += os.pwrite(self._fd, view[at:], begin + at)

    def commit(self) -> str:
        """Sync, hash what lies on the disk, rename; returns the sha256, 64 hex digits."""
        os.fsync(self._fd)
        digest = sha256(self.temporary)
        self.temporary.replace(self.path)
        self._committed = True
        sync_folder(self.path.parent)
        return digest

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        if not self._committed:
            self.temporary.unlink(missing_ok=True)


def layout(tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> tuple[bytes, dict[str, Slot], int]:
    """The header's bytes (length included), each tensor's place, and the size of the whole file in bytes."""
    ordered = sorted(tensors, key=lambda t: (-DTYPE_BYTES[t[1]], t[0]))
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


def sync_folder(path: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    bits = round(DTYPE_BYTES[dtype] * 8)
    for n in shape:
        bits *= n
    return -(-bits // 8)
