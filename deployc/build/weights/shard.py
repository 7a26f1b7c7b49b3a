"""One shard: read in the order it lies, each tensor merged, quantized or copied, chunk by chunk, on several threads.

One thread reads, some compute, one hashes and writes what they made, all at once; chunks stay in order, and each is
computed by one thread alone, so that the bytes do not depend on how many there are. Runs in the build interpreter.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import torch

from deployc.build import faults
from deployc.build.quantize import rows as quantize
from deployc.build.weights.layout import FLOATS, Work
from deployc.build.weights.safetensors_file import Reader
from deployc.build.weights.tensors import BLOCK, DTYPES, HANDED, as_bytes, as_float32, empty, is_finite, laid, ranges
from deployc.build.weights.writer import Writer
from deployc.facts.faults import Fault
from deployc.types.facts import DTYPE_BYTES
from deployc.types.scheme import Scheme

Advance = Callable[[str, int], None]
"""(tensor, bytes written since the last call)."""
Put = tuple[int, memoryview]
"""Bytes from the start of the file, and what goes there."""


class Change(Protocol):
    """What adapters make of one tensor."""

    def rows(self, base: torch.Tensor | None, first: int, last: int) -> torch.Tensor:
        """Rows [first, last) of the result in float32, of the base's rows among them (None: it has no such tensor).

        `base` is the callee's to work in.
        """


class Changes(Protocol):
    """The adapters, as far as this pass asks them."""

    def of(self, name: str) -> Change:
        """The change of a tensor that they have a say in, with all that it needs read into memory."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows [first, last) of a tensor: `raw` are the base's bytes among them."""

    work: Work
    change: Change | None
    raw: memoryview
    first: int
    last: int


def write(
    reader: Reader, writer: Writer, work: Sequence[Work], changes: Changes, threads: int, advance: Advance
) -> None:
    """Fill the writer's file; the input is read once, in order.

    Raises Fault DC275 for a weight that is not finite, OSError.
    """
    waiting: deque[tuple[str, Future[list[Put]]]] = deque()  # by name: what was read goes once it is computed
    writes: deque[tuple[str, int, Future[None]]] = deque()

    def written(limit: int) -> None:
        while len(writes) > limit:
            name, size, end = writes.popleft()
            end.result()
            advance(name, size)

    with (
        ThreadPoolExecutor(threads) as pool,
        ThreadPoolExecutor(1) as out,
    ):

        def handed_on(limit: int) -> None:
            while len(waiting) > limit:
                name, made = waiting.popleft()
                puts = made.result()
                writes.append((name, sum(len(content) for _, content in puts), out.submit(_put, writer, puts)))

        try:
            for chunk in _chunks(reader, writer, work, changes):
                waiting.append((chunk.work.name, pool.submit(_made, chunk, writer)))
                handed_on(threads + 1)
                written(2)
            handed_on(0)
            written(0)
        except BaseException:
            for executor in (pool, out):
                executor.shutdown(wait=False, cancel_futures=True)
            raise


def _chunks(reader: Reader, writer: Writer, work: Sequence[Work], changes: Changes) -> Iterator[Chunk]:
    """Every tensor's rows; all of the file's bytes are in one of them, in the order they lie."""
    for item in work:
        change = changes.of(item.name) if item.changed else None
        source = item.source
        stride = 0 if source is None else round(math.prod(source.shape[1:]) * DTYPE_BYTES[source.dtype])
        at, end = (0, 0) if source is None else (source.begin, source.end)
        rows = item.shape[0] if item.shape else 1
        for first, last in ranges(
            item.shape, round(HANDED / DTYPE_BYTES[item.dtype if source is None else source.dtype])
        ):
            until = end if last == rows else min(at + (last - first) * stride, end)
            raw = empty(until - at, _place(writer, item.name, first) if item.copied else 0)
            reader.fill(raw, at)
            yield Chunk(item, change, raw, first, last)
            at = until


def _put(writer: Writer, puts: Sequence[Put]) -> None:
    for at, content in puts:
        writer.write(at, content)


def _made(chunk: Chunk, writer: Writer) -> list[Put]:
    """A chunk as it is stored. Raises Fault DC275."""
    item = chunk.work
    if item.copied:
        _check(chunk)
        return [(_place(writer, item.name, chunk.first), chunk.raw)]
    stored = _plain(chunk, writer) if item.scheme is None else _quantized(chunk, item.scheme, writer)
    puts: list[Put] = [(_place(writer, name, chunk.first), as_bytes(tensor)) for name, tensor in stored.items()]
    if item.scheme is not None and chunk.last == item.shape[0]:
        for name, tensor in quantize.constants(item.scheme, item.name.removesuffix(".weight"), item.shape).items():
            puts.append((writer.slots[name].begin, as_bytes(tensor)))
    return puts


def _plain(chunk: Chunk, writer: Writer) -> dict[str, torch.Tensor]:
    item = chunk.work
    stored = _laid(chunk, writer, item.name, item.shape[1:], DTYPES[item.dtype])
    for first, last in _blocks(chunk):
        _rounded(chunk, first, last, stored[first:last])
    return {item.name: stored}


def _quantized(chunk: Chunk, scheme: Scheme, writer: Writer) -> dict[str, torch.Tensor]:
    item = chunk.work
    module, stored = item.name.removesuffix(".weight"), dict[str, torch.Tensor]()
    for first, last in _blocks(chunk):
        plain = torch.empty((last - first, *item.shape[1:]), dtype=DTYPES[item.dtype])
        _rounded(chunk, first, last, plain)
        for name, rows in quantize.stored(scheme, module, plain).items():
            if name not in stored:
                stored[name] = _laid(chunk, writer, name, rows.shape[1:], rows.dtype)
            stored[name][first:last] = rows
    return stored


def _laid(chunk: Chunk, writer: Writer, name: str, width: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Room for a chunk's rows of a tensor, as they will lie in the file."""
    return laid((chunk.last - chunk.first, *width), dtype, _place(writer, name, chunk.first))


def _blocks(chunk: Chunk) -> list[tuple[int, int]]:
    """Ranges of a chunk's rows, from its first on."""
    return ranges((chunk.last - chunk.first, *chunk.work.shape[1:]), BLOCK)


def _rounded(chunk: Chunk, first: int, last: int, into: torch.Tensor) -> None:
    """Rows of a chunk, changed, rounded once; checked, as one infinity would spoil every answer of the model."""
    item, base = chunk.work, None
    if item.source is not None:
        shape = item.source.shape[1:]
        stride = round(math.prod(shape) * DTYPE_BYTES[item.source.dtype])
        raw = chunk.raw[first * stride : last * stride]
        base = as_float32(raw, item.source.dtype, (len(raw) // stride if stride else last - first, *shape))
    values = base if chunk.change is None else chunk.change.rows(base, chunk.first + first, chunk.first + last)
    if values is None:
        raise ValueError(f"{item.name} is neither the base's nor an adapter's")
    into.copy_(values)
    if not is_finite(into):
        _check(chunk)
        raise Fault(faults.merged_not_finite(item.name, item.dtype, base=False))


def _check(chunk: Chunk) -> None:
    """Raises Fault DC275 where the base's own weight is not finite."""
    source = chunk.work.source
    if source is None or source.dtype not in FLOATS or not chunk.raw:
        return
    if not is_finite(torch.frombuffer(chunk.raw, dtype=DTYPES[source.dtype])):
        raise Fault(faults.merged_not_finite(source.name, source.dtype, base=True))


def _place(writer: Writer, name: str, row: int) -> int:
    """Where a tensor's row lies in the file."""
    slot = writer.slots[name]
    rows = slot.shape[0] if slot.shape else 1
    return slot.begin + row * ((slot.end - slot.begin) // max(rows, 1))
