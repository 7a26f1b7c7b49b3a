"""adapter_model.bin, torch's zip file: which tensors it holds and where, without torch and without running its pickle.

The zip holds `<name>/data.pkl`, a pickle of a dict of tensors, and `<name>/data/<key>`, the raw bytes of each storage
(torch/serialization.py, `_save`; torch 2.13). The pickle calls `torch._utils._rebuild_tensor_v2` on storages that it
names by id: here those calls make descriptions, and every other name in it is refused.
"""

from __future__ import annotations

import io
import math
import pickle  # only its opcodes: no name but those below is looked up
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deployc.facts import faults
from deployc.facts.faults import Fault
from deployc.types.facts import DTYPE_BYTES

LARGEST = 64 * 2**20
"""Bytes of the pickle itself, which holds names and shapes alone."""
_STORAGES = {
    "DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16",
    "LongStorage": "I64", "IntStorage": "I32", "ShortStorage": "I16", "CharStorage": "I8", "ByteStorage": "U8",
    "BoolStorage": "BOOL",
}  # fmt: skip

Read = Callable[[int, int], bytes]
"""(first byte, end) -> exactly those bytes, or a Fault."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Raw bytes in the zip: `entry` names them, `elements` of `dtype`."""

    entry: str
    dtype: str
    elements: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of a storage, in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def end(self) -> int:
        """One past the last element of the storage that it reaches."""
        if 0 in self.shape:
            return self.offset
        return self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)) + 1

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie in order."""
        wanted = 1
        for n, s in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if n != 1 and s != wanted:
                return False
            wanted *= n
        return True


@dataclass(frozen=True, slots=True)
class Placed:
    """Bytes [begin, end) of the file that are a tensor's elements, in order."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read(adapter: str, where: str, size: int, read_bytes: Read) -> dict[str, Tensor]:
    """The tensors of a file of `size` bytes, by name. Raises Fault DC232; the reader's own."""
    with _opened(adapter, where, size, read_bytes) as archive:
        return _read(adapter, where, archive)


def places(adapter: str, where: str, size: int, read_bytes: Read) -> dict[str, Placed]:
    """Where each tensor's bytes lie; those that do not lie in order are left out. Raises Fault DC232."""
    placed: dict[str, Placed] = {}
    with _opened(adapter, where, size, read_bytes) as archive:
        for name, tensor in _read(adapter, where, archive).items():
            entry = archive.getinfo(tensor.storage.entry)
            if not tensor.contiguous:
                continue
            local = read_bytes(entry.header_offset, entry.header_offset + 30)
            start = entry.header_offset + 30 + int.from_bytes(local[26:28], "little")
            start += int.from_bytes(local[28:30], "little")
            width = round(DTYPE_BYTES[tensor.storage.dtype])
            begin = start + tensor.offset * width
            end = begin + math.prod(tensor.shape) * width
            placed[name] = Placed(tensor.storage.dtype, tensor.shape, begin, end)
    return placed


def _opened(adapter: str, where: str, size: int, read_bytes: Read) -> zipfile.ZipFile:
    if size < 4 or read_bytes(0, 4) != b"PK\x03\x04":
        raise faults.adapter_pickle(adapter, where, "it is not torch's zip format (of torch 1.6 and newer).")
    try:
        return zipfile.ZipFile(io.BufferedReader(_Ranges(size, read_bytes), 2**16))
    except zipfile.BadZipFile as wrong:
        raise faults.adapter_pickle(adapter, where, f"it is truncated or damaged ({wrong}).") from None


def _read(adapter: str, where: str, archive: zipfile.ZipFile) -> dict[str, Tensor]:
    entries = {entry.filename: entry for entry in archive.infolist()}
    pickles = [name for name in entries if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1 or entries[pickles[0]].file_size > LARGEST:
        raise faults.adapter_pickle(adapter, where, "it does not hold one data.pkl, as torch writes it.")
    root = pickles[0].removesuffix("data.pkl")
    try:
        if root + "byteorder" in entries and archive.read(root + "byteorder") != b"little":
            raise faults.adapter_pickle(adapter, where, "its numbers are big-endian.")
        state = _Descriptions(archive.read(pickles[0]), root).load()
    except Fault:
        raise
    except (pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, NotImplementedError) as wrong:
        raise faults.adapter_pickle(adapter, where, f"{wrong}.") from None
    except Exception as wrong:
        raise faults.adapter_pickle(adapter, where, f"its pickle is damaged ({type(wrong).__name__}).") from None
    if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
        raise faults.adapter_pickle(adapter, where, "it is no dict of tensors.")
    tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    if len(tensors) < len(state):
        odd = next(name for name in state if name not in tensors)
        raise faults.adapter_pickle(adapter, where, f"{odd!r} in it is no tensor.")
    for name, tensor in tensors.items():
        entry = entries.get(tensor.storage.entry)
        width = round(DTYPE_BYTES[tensor.storage.dtype])
        if entry is None or entry.compress_type != zipfile.ZIP_STORED or tensor.end * width > entry.file_size:
            raise faults.adapter_pickle(adapter, where, f"the bytes of {name} are not all in it.")
    return tensors


class _Descriptions(pickle.Unpickler):
    """Unpickles tensors as descriptions. Raises UnpicklingError for any other name."""

    def __init__(self, content: bytes, root: str) -> None:
        super().__init__(io.BytesIO(content))
        self._root = root
        self._known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): _parameter,
        } | {("torch", name): dtype for name, dtype in _STORAGES.items()}

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (found := self._known.get((module_name, global_name))) is None:
            raise pickle.UnpicklingError(f"it names {module_name}.{global_name}, which no dict of tensors needs")
        return found

    def persistent_load(self, pid: Any, /) -> Storage:
        kind, dtype, key, _, elements = pid
        if kind != "storage" or dtype not in DTYPE_BYTES or type(elements) is not int:
            raise pickle.UnpicklingError("it names a storage in an unknown way")
        return Storage(f"{self._root}data/{key}", dtype, elements)


def _tensor(storage: Storage, offset: int, shape: Sequence[int], stride: Sequence[int], *_: Any) -> Tensor:
    numbers = (offset, *shape, *stride)
    if not isinstance(storage, Storage) or any(type(n) is not int or n < 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor in it has an impossible shape")
    if len(shape) != len(stride):
        raise pickle.UnpicklingError("a tensor in it has an impossible shape")
    return Tensor(storage, offset, tuple(shape), tuple(stride))


def _parameter(data: Tensor, *_: Any) -> Tensor:
    return data


class _Ranges(io.RawIOBase):
    """A file that is read by ranges."""

    def __init__(self, size: int, read_bytes: Read) -> None:
        self._size, self._read, self._at = size, read_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("before the start of the file")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        end = min(self._at + len(buffer), self._size)
        content = self._read(self._at, end) if end > self._at else b""
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)
