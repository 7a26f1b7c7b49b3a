"""The build's own process, in an interpreter with torch: a job as one JSON line on standard input, events out.

Events, JSON lines on standard output: `ready` {torch, threads}, `progress` {phase, done, total, item}, `error`
{diagnostic}, `done` {shards, adapters, seconds}. It ends when standard input closes (whoever started it is gone), and
on SIGINT and SIGTERM, with nothing half-written left. Only the standard library and torch are imported.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import torch

from deployc.build import faults, shard
from deployc.build.adapters import Adapter
from deployc.build.journal import Journal
from deployc.build.layout import plan
from deployc.build.safetensors_file import Reader, Writer, layout
from deployc.facts.faults import Fault

Job = Mapping[str, Any]
"""into, model: folders; source: the model as people name it. shards: file names. quantized: tensor names.
adapters: [{name, path, weight, config}]. dtype: "bfloat16" … threads: a number, or null for torch's own choice.
identity: {…}, with which a journal must agree."""


class Interrupted(BaseException):
    """SIGINT, SIGTERM, or the one who started this process is gone."""


class Events:
    """The way back; `progress` at most 20 times a second."""

    def __init__(self, descriptor: int) -> None:
        self._out = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **values: Any) -> None:
        """One event, at once."""
        try:
            self._out.write(json.dumps({"event": event, **values}) + "\n")
            self._out.flush()
        except BrokenPipeError:
            raise Interrupted from None

    def progress(self, phase: str, done: int, total: int, item: str) -> None:
        """How far it is, in bytes."""
        if done >= total or time.monotonic() - self._last > 0.05:
            self._last = time.monotonic()
            self.send("progress", phase=phase, done=done, total=total, item=item)


def main() -> None:
    """Run one job and exit: 0 done, 1 an error event was sent, 130 interrupted."""
    events = Events(os.dup(1))
    os.dup2(2, 1)  # whatever a library prints is no event
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    code = 1
    try:
        job = json.loads(sys.stdin.readline())
        threading.Thread(target=_watch, daemon=True).start()
        run(job, events)
        code = 0
    except Interrupted:
        code = 130
    except Fault as fault:
        events.send("error", diagnostic=asdict(fault.diagnostic))
    except OSError as wrong:
        what, reason = str(wrong.filename or job["into"]), wrong.strerror or str(wrong)
        diagnostic = (faults.disk_full if wrong.errno in faults.FULL else faults.no_access)(what, reason)
        events.send("error", diagnostic=asdict(diagnostic))
    sys.stderr.flush()
    os._exit(code)  # the watching thread is blocked in a read that only the other side ends


def run(job: Job, events: Events) -> None:
    """Check the adapters, then write every shard that is not finished yet."""
    if job["threads"] is not None:
        torch.set_num_threads(job["threads"])
    identity = {**job["identity"], "torch": torch.__version__, "threads": torch.get_num_threads()}
    events.send("ready", torch=torch.__version__, threads=torch.get_num_threads())
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
    merged = frozenset(name for adapter in adapters for name in adapter.merged)
    quantized = frozenset(job["quantized"])
    model, into = Path(job["model"]), Path(job["into"])
    plans, total = {}, 0
    for name in job["shards"]:
        with Reader(model / name, job["source"]) as reader:
            plans[name] = plan(reader.slots, merged, quantized, job["dtype"])
            slots = layout((t for work in plans[name] for t in work.outputs()), {})[1]
            total += sum(slot.end - slot.begin for slot in slots.values())
    done, shards = 0, {}

    def advance(item: str, written: int) -> None:
        nonlocal done
        done += written
        events.progress("write", done, total, item)

    for name, work in plans.items():
        with Reader(model / name, job["source"]) as reader:
            source = (model / name).stat()
            outputs = [tensor for item in work for tensor in item.outputs()]
            if (line := journal.finished(name, source)) is None:
                with Writer(into / name, outputs, reader.metadata or {"format": "pt"}) as writer:
                    read = shard.write(reader, writer, work, adapters, advance)
                    _unchanged(model / name, source, job["source"])
                    digest = writer.commit()
                sizes = {"bytes": writer.size, "read": reader.size}
                line = journal.add(name, source, sha256=digest, input=read, **sizes)
            else:
                slots = layout(outputs, {})[1]
                advance(name, sum(slot.end - slot.begin for slot in slots.values()))
            shards[name] = line
    return shards


def _unchanged(path: Path, before: os.stat_result, where: str) -> None:
    """Raises Fault DC277 for a shard that another program wrote to while it was read."""
    now = path.stat()
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise Fault(faults.changed_inputs(where, [path.name]))


def _interrupt(*_: object) -> NoReturn:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # cleaning up is short and is not to be cut off
    raise Interrupted


def _watch() -> None:
    """Wait for the end of standard input. One more SIGTERM to oneself interrupts the main thread at its next step."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
