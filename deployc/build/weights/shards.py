"""All shards of a model, one after the other; the last one is synced and named while the next is at work. Runs in the
build interpreter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build import faults
from deployc.build.weights import shard
from deployc.build.weights.journal import Journal
from deployc.build.weights.layout import Work
from deployc.build.weights.safetensors_file import Reader, layout, same
from deployc.build.weights.shard import Advance, Changes
from deployc.build.weights.writer import Writer
from deployc.facts.faults import Fault

Line = dict[str, Any]
"""A shard's line of the journal: sha256 and bytes of what was written."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where shards are read and written; `source` is the model as people name it."""

    model: Path
    into: Path
    source: str


def write(
    folders: Folders,
    plans: Mapping[str, Sequence[Work]],
    changes: Changes,
    journal: Journal,
    threads: int,
    advance: Advance,
) -> dict[str, Line]:
    """Every shard that the journal does not have as finished. Raises Fault DC275, DC277; OSError."""
    lines: dict[str, Line] = {}
    ends: list[tuple[str, Future[Line]]] = []
    with ThreadPoolExecutor(1) as finisher:
        for name, work in plans.items():
            path = folders.model / name
            source = path.stat()
            if (line := journal.finished(name, source)) is not None:
                lines[name] = line
                advance(name, size(work))
                continue
            (folders.into / name).unlink(missing_ok=True)  # damaged, or made of something else: its room is needed
            with Reader(path, folders.source) as reader:
                writer = Writer(folders.into / name, outputs(work), reader.metadata or {"format": "pt"})
                try:
                    shard.write(reader, writer, work, changes, threads, advance)
                    _unchanged(path, source, folders.source)
                    for before, end in ends:
                        lines[before] = end.result()
                except BaseException:
                    writer.close()
                    raise
            ends = [(name, finisher.submit(_finished, writer, journal, name, source))]
        for before, end in ends:
            lines[before] = end.result()
    return {name: lines[name] for name in plans}


def outputs(work: Sequence[Work]) -> list[tuple[str, str, tuple[int, ...]]]:
    """The tensors of one file of the artifact."""
    return [tensor for item in work for tensor in item.outputs()]


def size(work: Sequence[Work]) -> int:
    """Bytes of their values."""
    return sum(slot.end - slot.begin for slot in layout(outputs(work), {})[1].values())


def _finished(writer: Writer, journal: Journal, name: str, source: os.stat_result) -> Line:
    with writer:
        return journal.add(name, source, sha256=writer.commit(), bytes=writer.size)


def _unchanged(path: Path, before: os.stat_result, where: str) -> None:
    """Raises Fault DC277 for a shard that another program wrote to while it was read."""
    if not same(before, path.stat()):
        raise Fault(faults.changed_inputs(where, [path.name]))
