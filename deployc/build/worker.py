"""The build's own process, in an interpreter with torch: adapters are checked, then every shard is written.

`ready` says {torch, threads}, `done` {shards, adapters, seconds}. Only the standard library and torch are imported.
Runs in the build interpreter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from deployc.build.child import Events, serve
from deployc.build.merge.adapters import Adapter, Adapters, Base
from deployc.build.merge.change import Rows
from deployc.build.merge.files import read_rows
from deployc.build.weights.journal import Journal
from deployc.build.weights.layout import Work, plan
from deployc.build.weights.safetensors_file import Reader, Slot
from deployc.build.weights.shards import Folders, size, write
from deployc.types.merging import part
from deployc.types.scheme import scheme

Job = Mapping[str, Any]
"""into, model: folders; source: the model as people name it. shards: file names. quantized: tensor -> its scheme.
adapters: [{name, path, weight, parts, borrowed}]. dtype: "bfloat16" … threads: a number, or null for one a core.
identity: {…}, with which a journal must agree."""


def main() -> None:
    """Run one job of standard input, and exit."""
    serve(run)


def run(job: Job, events: Events) -> None:
    """Check the adapters, then write every shard that is not finished yet."""
    torch.set_num_threads(1)  # a chunk is one thread's matter: the bytes do not depend on how many there are
    identity = {**job["identity"], "torch": torch.__version__}
    events.send("ready", torch=torch.__version__, threads=_threads(job))
    started = time.monotonic()
    with ExitStack() as stack, torch.inference_mode():
        adapters = [stack.enter_context(_adapter(entry)) for entry in job["adapters"]]
        folders = Folders(Path(job["model"]), Path(job["into"]), job["source"])
        slots = _slots(job, folders)
        base = _base(stack, folders, slots)
        digests = _check(adapters, base, events)
        checked = time.monotonic()
        shards = _write(job, folders, slots, Adapters(adapters, base), Journal(Path(job["into"]), identity), events)
    seconds = {"check": checked - started, "write": time.monotonic() - checked}
    events.send("done", shards=shards, adapters=digests, seconds=seconds)


def _adapter(entry: Mapping[str, Any]) -> Adapter:
    parts = [part(values) for values in entry["parts"]]
    return Adapter(entry["name"], Path(entry["path"]), entry["weight"], parts, entry["borrowed"])


def _check(adapters: list[Adapter], base: Base, events: Events) -> dict[str, dict[str, Any]]:
    total, done = sum(adapter.size for adapter in adapters), 0
    digests = {}
    for adapter in adapters:
        digests[adapter.name] = {"bytes": adapter.size, "sha256": adapter.check(base)}
        done += adapter.size
        events.progress("check", done, total, adapter.name)
    return digests


def _slots(job: Job, folders: Folders) -> dict[str, list[Slot]]:
    """The tensors of every shard."""
    slots = {}
    for name in job["shards"]:
        with Reader(folders.model / name, folders.source) as reader:
            slots[name] = reader.slots
    return slots


def _base(stack: ExitStack, folders: Folders, slots: Mapping[str, list[Slot]]) -> Base:
    """Reading the base's tensors out of turn; a shard is opened when the first is asked for."""
    placed = {slot.name: (name, slot) for name, found in slots.items() for slot in found}
    readers: dict[str, Reader] = {}

    def reading(tensor: str) -> tuple[Rows, tuple[int, ...]] | None:
        if tensor not in placed:
            return None
        name, slot = placed[tensor]
        if name not in readers:
            readers[name] = stack.enter_context(Reader(folders.model / name, folders.source))
        return lambda first, last: read_rows(readers[name], slot, first, last), slot.shape

    return reading


def _write(
    job: Job,
    folders: Folders,
    slots: Mapping[str, list[Slot]],
    changes: Adapters,
    journal: Journal,
    events: Events,
) -> dict[str, dict[str, Any]]:
    plans = _plans(job, slots, changes)
    total, done = sum(size(work) for work in plans.values()), 0

    def advance(item: str, written: int) -> None:
        nonlocal done
        done += written
        events.progress("write", done, total, item)

    return write(folders, plans, changes, journal, _threads(job), advance)


def _plans(job: Job, slots: Mapping[str, list[Slot]], changes: Adapters) -> dict[str, list[Work]]:
    """The work on every shard; what the base lacks goes to the end of the last one."""
    base = {slot.name: slot.shape for found in slots.values() for slot in found}
    changed = changes.changed(base)
    added = sorted(changed.keys() - base)
    quantized = {name: scheme(values) for name, values in job["quantized"].items()}
    last = job["shards"][-1]
    return {
        name: plan(found, changed, added if name == last else (), quantized, job["dtype"])
        for name, found in slots.items()
    }


def _threads(job: Job) -> int:
    return int(job["threads"] or len(os.sched_getaffinity(0)))
