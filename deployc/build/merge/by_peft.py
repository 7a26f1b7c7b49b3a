"""Adapters that are not merged tensor by tensor: peft's own merge, with the whole model in float32 in memory.

What it writes is the merged 16-bit model as transformers saves it, rounded once, for the pass that quantizes or copies
it. `ready` says {torch, threads}, `done` {shards, adapters, model, versions, seconds}. Runs in the build interpreter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from deployc.build import faults
from deployc.build.child import Events, serve
from deployc.build.merge.files import opened
from deployc.build.weights.layout import STORED
from deployc.build.weights.safetensors_file import sha256, sync
from deployc.build.weights.tensors import CHUNK, DTYPES, is_finite, ranges
from deployc.diagnostics import error
from deployc.facts.faults import Fault

Job = Mapping[str, Any]
"""into, model: folders, `into` an empty one; source: the model as people name it. shards: the model's files. adapter:
{name, path}, its weights' file. dtype: "bfloat16" … threads: a number, or null for one a core."""

LIBRARIES = ("torch", "transformers", "peft")
SHARD = "4GB"
QUIET = {"TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
"""Read when the libraries are imported: bars would fill a file nobody reads, and nothing is to be fetched."""


def main() -> None:
    """Run one job of standard input, and exit."""
    os.environ.update(QUIET)
    serve(run)


def run(job: Job, events: Events) -> None:
    """Check the adapter, merge it, save. Raises Fault DC239, DC248, DC274, DC238; OSError."""
    torch.set_num_threads(threads := int(job["threads"] or len(os.sched_getaffinity(0))))
    events.send("ready", torch=torch.__version__, threads=threads)
    started = time.monotonic()
    transformers, peft = _libraries()
    adapter, into = job["adapter"], Path(job["into"])
    digest = _check(adapter["name"], Path(adapter["path"]))
    checked = time.monotonic()
    with _said(adapter["name"]), torch.inference_mode():
        model = _merged(transformers, peft, Path(job["model"]), Path(adapter["path"]).parent, adapter["name"])
        events.progress("merge", 1, 2, adapter["name"])
        merged = time.monotonic()
        model.to(DTYPES[STORED[job["dtype"]]]).save_pretrained(into, max_shard_size=SHARD)
    shards = _synced(into)
    events.progress("merge", 2, 2, adapter["name"])
    events.send(
        "done",
        shards=shards,
        adapters={adapter["name"]: digest},
        model={name: _content(Path(job["model"]) / name) for name in job["shards"]},
        versions={name: version(name) for name in LIBRARIES},
        seconds={"check": checked - started, "merge": merged - checked, "save": time.monotonic() - merged},
    )


def _libraries() -> tuple[Any, Any]:
    """Raises Fault DC248."""
    try:
        import peft
        import transformers
    except ImportError as missing:
        raise Fault(
            error(
                "DC248",
                "the build interpreter lacks a library for this merge",
                f"{missing.name or missing} cannot be imported there ({missing}).",
                "Install transformers and peft there (pip install transformers peft), or set build.python to another.",
            )
        ) from None
    return transformers, peft


def _check(name: str, path: Path) -> dict[str, Any]:
    """Bytes and sha256 of the adapter's weights. Raises Fault DC274."""
    tensors = opened(path, name)
    try:
        for tensor, shape in tensors.shapes.items():
            for first, last in ranges(shape, CHUNK):
                values = tensors.rows(tensor, first, last)
                if values.numel() and not is_finite(values):
                    raise Fault(faults.not_finite(name, tensor))
    finally:
        tensors.close()
    return _content(path)


def _merged(transformers: Any, peft: Any, base: Path, adapter: Path, name: str) -> Any:
    """The merged model in float32. Raises Fault DC239 where no weight became another."""
    config = transformers.AutoConfig.from_pretrained(base, local_files_only=True)
    kind = getattr(transformers, config.architectures[0])
    model = kind.from_pretrained(base, dtype=torch.float32, local_files_only=True)
    before = {tensor: _sums(values) for tensor, values in model.state_dict().items()}
    model = peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()
    if all(before.get(tensor) == _sums(values) for tensor, values in model.state_dict().items()):
        detail = f"{name}: after peft's merge every weight is the model's own."
        fix = "Train it and save again, or take it out of adapters."
        raise Fault(error("DC239", "the adapter changes nothing", detail, fix))
    return model


def _sums(values: torch.Tensor) -> tuple[float, float]:
    """Two sums that a change of any kind moves."""
    flat = values.reshape(-1)
    middle = len(flat) // 2
    return float(flat[:middle].sum(dtype=torch.float64)), float(flat[middle:].sum(dtype=torch.float64))


def _synced(into: Path) -> dict[str, dict[str, Any]]:
    """Every file of weights that was written, on the disk, by name."""
    paths = sorted(into.glob("*.safetensors"))
    for path in into.iterdir():
        sync(path)
    sync(into)
    return {path.name: _content(path) for path in paths}


def _content(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


@contextmanager
def _said(name: str) -> Iterator[None]:
    """What peft or transformers cannot do with an adapter is the user's to know, not a traceback."""
    try:
        yield
    except (RuntimeError, ValueError, KeyError, AttributeError, NotImplementedError, TypeError) as wrong:
        detail = f"{name}: peft {version('peft')} cannot merge it: {faults.reason(wrong)}."
        fix = "Merge it with the version of peft that trained it, and name the merged folder as model.source."
        raise Fault(error("DC238", "this feature of an adapter is not supported yet", detail, fix)) from None
