"""A shard as it is written: in any order, with and without O_DIRECT, the same bytes and the digest of what is there."""

from __future__ import annotations

import errno
import mmap
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployc.build.weights import writer
from deployc.build.weights.safetensors_file import Reader, sha256
from deployc.build.weights.writer import Writer
from deployc.types.groups import Tensor

TENSORS: list[Tensor] = [("a", "BF16", (300, 7)), ("b", "I8", (4099,)), ("c", "U8", (11, 13)), ("d", "I8", (9000,))]
Order = Callable[[list[tuple[str, int, int]]], list[tuple[str, int, int]]]


def shuffled(pieces: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    return random.Random(3).sample(pieces, len(pieces))


ORDERS: dict[str, Order] = {"in order": list, "backwards": lambda p: p[::-1], "in no order": shuffled}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pieces of one page, so that a small file takes several."""
    monkeypatch.setattr(writer, "PIECE", 4096)
    yield


def content(name: str, size: int) -> bytes:
    return random.Random(name).randbytes(size)


def written(path: Path, order: Order, step: int) -> str:
    """Write all tensors in chunks of `step` bytes, in an order of chunks; the digest that the writer gives."""
    with Writer(path, TENSORS, {"format": "pt"}) as file:
        chunks = [
            (slot.name, at, min(at + step, slot.end))
            for slot in sorted(file.slots.values(), key=lambda slot: slot.begin)
            for at in range(slot.begin, slot.end, step)
        ]
        for name, begin, end in order(chunks):
            slot = file.slots[name]
            whole = content(name, slot.end - slot.begin)
            file.write(begin, whole[begin - slot.begin : end - slot.begin])
        return file.commit()


def laid(whole: bytes, begin: int) -> memoryview:
    """The bytes in memory that lies on its page as byte `begin` of a file does."""
    first = begin % mmap.PAGESIZE
    memory = memoryview(mmap.mmap(-1, first + max(len(whole), 1)))[first : first + len(whole)]
    memory[:] = whole
    return memory


def check(path: Path, digest: str) -> None:
    assert digest == sha256(path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    with Reader(path, "here") as reader:
        assert [(s.name, s.dtype, s.shape) for s in reader.slots] == TENSORS, "in the order given"
        for slot in reader.slots:
            assert bytes(reader.read(slot.begin, slot.end)) == content(slot.name, slot.end - slot.begin)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("held", [2**26, 1000, 0], ids=["all may wait", "little may wait", "nothing may wait"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_any_order_gives_the_same_file(
    tmp_path: Path, order: Order, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HELD", held)
    path = tmp_path / "model.safetensors"
    check(path, written(path, order, 777))


@pytest.mark.parametrize("least", [1, 4096, 5000, 2**20])
@pytest.mark.parametrize("step", [4096, 5000, 40_000, 1_000_000])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_content_that_lies_as_in_the_file(
    tmp_path: Path, least: int, step: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of it, all of it, or none that is large enough, between content that lies anywhere."""
    monkeypatch.setattr(writer, "PIECE", 8192)
    monkeypatch.setattr(writer, "DIRECT", least)
    sizes = {"a": 70_001, "b": 4096, "c": 3, "d": 200_000, "e": 8191}
    path, count = tmp_path / "model.safetensors", 0
    with Writer(path, [(name, "U8", (size,)) for name, size in sizes.items()], {}) as file:
        for slot in sorted(file.slots.values(), key=lambda slot: slot.begin):
            whole = content(slot.name, slot.end - slot.begin)
            for at in range(0, len(whole), step):
                piece, count = whole[at : at + step], count + 1
                file.write(slot.begin + at, piece if count % every else laid(piece, slot.begin + at))
        digest = file.commit()
    assert digest == sha256(path)
    with Reader(path, "here") as reader:
        for slot in reader.slots:
            assert bytes(reader.read(slot.begin, slot.end)) == content(slot.name, sizes[slot.name])


@pytest.mark.usefixtures("small_pieces")
def test_a_file_system_that_refuses_to_open_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = os.open, []

    def opened(path: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_DIRECT:
            refused.append(path)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", opened)
    path = tmp_path / "model.safetensors"
    check(path, written(path, list, 777))
    assert refused == [path.with_name(".model.safetensors.partial")]


@pytest.mark.usefixtures("small_pieces")
def test_a_file_system_that_refuses_to_write_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = os.pwrite, 0

    def put(descriptor: int, data: Any, offset: int) -> int:
        nonlocal refused
        import fcntl

        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused += 1
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", put)
    path = tmp_path / "model.safetensors"
    check(path, written(path, list, 777))
    assert 1 <= refused <= 2, "asked once by each that writes, at most"


@pytest.mark.usefixtures("small_pieces")
def test_a_disk_that_fails_is_no_finished_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwrite", put)
    with pytest.raises(OSError, match="Input/output"):
        written(tmp_path / "model.safetensors", list, 777)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_pieces")
def test_less_memory_than_is_written_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "HELD", 1500)
    with Writer(tmp_path / "model.safetensors", TENSORS, {}) as file:
        most = 0
        for slot in sorted(file.slots.values(), key=lambda slot: -slot.begin):
            file.write(slot.begin, content(slot.name, slot.end - slot.begin))
            most = max(most, sum(len(waiting) for waiting in file._waiting.values()))
        digest = file.commit()
    assert most <= 1500
    check(tmp_path / "model.safetensors", digest)
