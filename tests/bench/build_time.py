"""How fast an artifact is made, against a plain copy and against peft: ratios in one run, each side in turn.

A copy is: read, written, synced, hashed (sha256), of as many bytes as the build wrote. Every run begins with nothing
left to be written back to the disk. Bounds: a merge 1.5 copies, with fp8 or int8 2.5, peft's load, merge_and_unload and
save_pretrained at least 3 merges; at most 1.5 GiB of anonymous memory in any build. `--large` adds the model of 15 GB
(it takes 35 GB of disk).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deployc.types.manifest import Artifact

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "build"), str(Path(__file__).resolve().parent)]
import models  # noqa: E402
import tiny  # noqa: E402

ROUNDS = 2
CHUNK = 2**24
PEFT = """
import sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
base = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
PeftModel.from_pretrained(base, sys.argv[2]).merge_and_unload().save_pretrained(sys.argv[3])
"""


def main() -> int:
    """Measure and judge; 1 where a bound is broken."""
    place = Path(os.environ.get("DEPLOYC_BENCH_DIR") or tempfile.gettempdir()) / "deployc-bench"
    broken: list[str] = []
    sizes = [("2 GB in 8 files", models.SMALL, 8)]
    if "--large" in sys.argv:
        sizes.append(("15 GB in 4 files", models.QWEN_7B, 4))
    try:
        for title, shape, shards in sizes:
            base = models.model(place / "base", shape, shards)
            adapter = models.adapter(place / "adapter", shape)
            for weights, bound in (("none", 1.5), ("fp8", 2.5), ("int8", 2.5)):
                broken += _against_a_copy(title, base, adapter, weights, bound, place)
            if shape is models.SMALL:
                broken += _against_peft(title, base, adapter, place)
            shutil.rmtree(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print("\n".join(["", *broken]) if broken else "\nall within their bounds")
    return 1 if broken else 0


def _against_a_copy(title: str, base: Path, adapter: Path, weights: str, bound: float, place: Path) -> list[str]:
    recipe = tiny.recipe(base, [adapter], weights=weights)
    builds, copies, memory, wrote = [], [], 0, 0
    for _ in range(ROUNDS):
        seconds, peak, artifact = _build(recipe, place)
        builds.append(seconds)
        memory = max(memory, peak)
        wrote = sum(c.bytes for name, c in artifact.manifest.files.items() if name.endswith(".safetensors"))
        shutil.rmtree(place / "store")
        copies.append(_timed(lambda wrote=wrote: _copy(base, place / "copy", wrote)))  # type: ignore[misc]
        shutil.rmtree(place / "copy")
    ratio = statistics.median(b / c for b, c in zip(builds, copies, strict=True))
    what = "merge" if weights == "none" else f"merge + {weights}"
    print(
        f"{title}: {what}: {ratio:.2f} copies (bound {bound}); {_all(builds)} s against {_all(copies)} s for "
        f"{wrote / 1e9:.1f} GB; RssAnon {memory / 2**30:.2f} GiB (bound 1.5)",
        flush=True,
    )
    broken = [f"{title}: {what}: {ratio:.2f} copies, bound {bound}"] if ratio > bound else []
    return broken + ([f"{title}: {what}: {memory / 2**30:.2f} GiB, bound 1.5"] if memory > 1.5 * 2**30 else [])


def _against_peft(title: str, base: Path, adapter: Path, place: Path) -> list[str]:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_build(tiny.recipe(base, [adapter]), place)[0])
        shutil.rmtree(place / "store")
        argv = [sys.executable, "-c", PEFT, str(base), str(adapter), str(place / "peft")]
        theirs.append(_timed(lambda argv=argv: subprocess.run(argv, check=True, capture_output=True)))  # type: ignore[misc]
        shutil.rmtree(place / "peft")
    ratio = statistics.median(t / o for o, t in zip(ours, theirs, strict=True))
    print(f"{title}: peft takes {ratio:.1f} merges (bound 3): {_all(theirs)} s against {_all(ours)} s", flush=True)
    return [f"{title}: only {ratio:.1f} times as fast as peft, bound 3"] if ratio < 3 else []


def _build(recipe: Any, place: Path) -> tuple[float, int, Artifact]:
    """Seconds, the most anonymous memory of the worker in bytes, and what was made."""
    peak, done = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, *(_anonymous(pid) for pid in _children()), 0)

    watcher = threading.Thread(target=look)
    os.sync()
    watcher.start()
    started = time.monotonic()
    try:
        artifact = tiny.built(recipe, place / "store", threads=None)
    finally:
        seconds = time.monotonic() - started
        done.set()
        watcher.join()
    return seconds, peak, artifact


def _children() -> list[str]:
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [pid for path in found for pid in path.read_text().split()]


def _anonymous(pid: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    _, _, rest = status.partition("RssAnon:")
    return int(rest.split()[0]) * 1024 if rest else 0


def _copy(base: Path, into: Path, wanted: int) -> None:
    """So many bytes of the model's files: copied, synced, and hashed from where they were written."""
    into.mkdir()
    for path in sorted(base.glob("*.safetensors")):
        take = min(wanted, path.stat().st_size)
        wanted -= take
        if not take:
            continue
        with path.open("rb") as source, (into / path.name).open("wb") as target:
            while take:
                take -= target.write(source.read(min(CHUNK, take)))
            target.flush()
            os.fsync(target.fileno())
        with (into / path.name).open("rb") as written:
            hashlib.file_digest(written, "sha256")


def _timed(what: Callable[[], object]) -> float:
    os.sync()  # what the run before left in memory is no burden of this one
    started = time.monotonic()
    what()
    return time.monotonic() - started


def _all(seconds: list[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)


if __name__ == "__main__":
    sys.exit(main())
