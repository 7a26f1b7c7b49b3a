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
from deployc.build.merge.adapters import Adapter, Adapters
from deployc.build.weights.journal import Journal
from deployc.build.weights.layout import Work, plan
from deployc.build.weights.safetensors_file import Reader
from deployc.build.weights.shards import Folders, size, write
from deployc.types.scheme import Scheme

Job = Mapping[str, Any]
"""into, model: folders; source: the model as people name it. shards: file names. quantized: tensor -> its scheme.
adapters: [{name, path, weight, config}]. dtype: "bfloat16" … threads: a number, or null for one a core.
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
        adapters = [
            stack.enter_context(Adapter(a["name"], Path(a["path"]), a["weight"], a["config"])) for a in job["adapters"]
        ]
        digests = _check(adapters, events)
        checked = time.monotonic()
        shards = _write(job, adapters, Journal(Path(job["into"]), identity), events)
    seconds = {"check": checked - started, "write": time.monotonic() - checked}
    events.send("done", shards=shards, adapters=digests, seconds=seconds)


def _check(adapters: list[Adapter], events: Events) -> dict[str, dict[str, Any]]:
    total, done = sum(adapter.size for adapter in adapters), 0
    digests = {}
    for adapter in adapters:
        digests[adapter.name] = {"bytes": adapter.size, "sha256": adapter.check()}
        done += adapter.size
        events.progress("check", done, total, adapter.name)
    return digests


def _write(job: Job, adapters: list[Adapter], journal: Journal, events: Events) -> dict[str, dict[str, Any]]:
    changes = Adapters(adapters)
    folders = Folders(Path(job["model"]), Path(job["into"]), job["source"])
    plans = _plans(job, folders, changes)
    total, done = sum(size(work) for work in plans.values()), 0

    def advance(item: str, written: int) -> None:
        nonlocal done
        done += written
        events.progress("write", done, total, item)

    return write(folders, plans, changes, journal, _threads(job), advance)


def _plans(job: Job, folders: Folders, changes: Adapters) -> dict[str, list[Work]]:
    """The work on every shard; what the base lacks goes to the end of the last one."""
    slots = {}
    for name in job["shards"]:
        with Reader(folders.model / name, folders.source) as reader:
            slots[name] = reader.slots
    base = {slot.name: slot.shape for found in slots.values() for slot in found}
    changed = changes.changed(base)
    added = sorted(changed.keys() - base)
    quantized = {
        name: Scheme(**{**scheme, "block": tuple(scheme["block"])}) for name, scheme in job["quantized"].items()
    }
    last = job["shards"][-1]
    return {
        name: plan(found, changed, added if name == last else (), quantized, job["dtype"])
        for name, found in slots.items()
    }


def _threads(job: Job) -> int:
    return int(job["threads"] or len(os.sched_getaffinity(0)))
