"""Making one artifact: sources, checks, small files, weights in one pass or by calibration, published under its key."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from deployc import __version__
from deployc.build import describe, faults, inputs, process
from deployc.build import store as shelf
from deployc.build.calibrated.run import Merged, calibrate, method, ready
from deployc.build.digests import Digests
from deployc.build.inputs import Inputs
from deployc.build.merge.in_memory import merge
from deployc.build.plain import is_source
from deployc.build.process import Begun
from deployc.build.quantize.config import quantization_config
from deployc.build.site import Site
from deployc.build.sources import adapter_folders, forget, model_folder
from deployc.build.tokenizer.carry import Carried, carry
from deployc.build.weights.safetensors_file import shards
from deployc.diagnostics import Diagnostic, Stop
from deployc.emit.flags import is_template
from deployc.emit.recipe import sixteen_bit
from deployc.facts.adapter import weights_file
from deployc.facts.headers import INDEX, SINGLE
from deployc.files import beside, write
from deployc.types.bundle import Recipe
from deployc.types.manifest import Artifact, Content

BETWEEN = ".by_peft"
"""The folder of the merged model that peft makes, in that of the artifact, until the pass has read it."""
WORKER = "deployc.build.worker"
LATER = ("torch._meta_registrations",)
"""Shapes of results of tensors without data, of which the worker has none: a quarter of the time to import torch."""
Plain = Callable[[], Path]
"""The folder of the same model in 16 bit, made where there is none yet."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What was written: `shards` by name, `read` as in a manifest; what config.json says of them; how it was made."""

    shards: Mapping[str, Content]
    read: Mapping[str, Content]
    quantization: Mapping[str, Any] | None
    made: Mapping[str, Any]  # torch, threads, seconds, versions
    notes: tuple[Diagnostic, ...] = ()


def make(recipe: Recipe, site: Site, plain: Plain) -> Artifact:
    """The recipe's artifact, in the store. Raises Stop, Fault, OSError; an interrupted build is gone on with.

    `plain` is called for formats that llm-compressor makes: it starts from the merged model.
    """
    with ExitStack() as stack:
        return _made(recipe, site, plain, _early(recipe, site, stack))


def _early(recipe: Recipe, site: Site, stack: ExitStack) -> Begun | None:
    """The worker, importing torch while the inputs are checked. What is wrong with it is told after that."""
    if method(recipe) is None:
        with suppress(Stop):
            return stack.enter_context(process.begun(site.interpreter, site.lock, WORKER, LATER))
    return None


def _made(recipe: Recipe, site: Site, plain: Plain, worker: Begun | None) -> Artifact:
    started = time.monotonic()
    model, adapters = model_folder(recipe, site), adapter_folders(recipe, site)
    fetched = time.monotonic()
    checked = inputs.check(recipe, model, adapters)
    carried = _carried(recipe, site, checked, adapters)
    room = checked.bytes + sum(len(content) for content in carried.files.values())
    if method(recipe) is not None:
        ready(recipe, folder=site.folder, python=site.quantizer)  # before hours of work, not after
        room += _of_plain(recipe, site, checked)
    into = shelf.begin(site.store, recipe.key, room)
    weights = (
        _calibrated(recipe, site, checked, plain, into)
        if method(recipe)
        else _streamed(recipe, site, checked, into, worker)
    )
    small = {
        **carried.files,
        "config.json": describe.config_json(
            checked.config, recipe.dtype, weights.quantization, {**checked.changes, **carried.config}
        ),
    }
    if tuple(weights.shards) != (SINGLE,):
        small[INDEX] = describe.index_json(into, weights.shards)
    for name, content in small.items():
        write(into / name, content, shelf.READABLE)
    read = {**weights.read, **carried.inputs, **_configs(model, adapters)}
    _confirm(recipe, site, read, {"model": model, **{f"adapters/{name}": at for name, at in adapters.items()}})
    seconds = {"fetch": fetched - started, **weights.made["seconds"], "total": time.monotonic() - started}
    files = {**weights.shards, **{name: describe.content(into / name) for name in small}}
    manifest = describe.manifest(recipe, read, files, {**weights.made, "seconds": seconds})
    notes = (*checked.notes, *carried.notes, *weights.notes)
    return replace(shelf.publish(site.store, into, manifest), notes=notes)


def _of_plain(recipe: Recipe, site: Site, checked: Inputs) -> int:
    """Bytes that the merged model in 16 bit takes on the way, where it is not there yet."""
    there = is_source(recipe, checked.model) or shelf.artifact_for(site.store, sixteen_bit(recipe).key) is not None
    return 0 if there else checked.plain_bytes


def _carried(recipe: Recipe, site: Site, checked: Inputs, adapters: Mapping[str, Path]) -> Carried:
    """The small files. Raises Stop: all that is wrong with them."""
    template = recipe.template[0] if recipe.template is not None else None
    if template is not None and not is_template(template):
        template = beside(site.folder, template).read_text(encoding="utf-8-sig")
    carried = carry(checked.model, adapters, {**checked.config, **checked.changes}, checked.rows, template)
    if carried.report.errors:
        raise Stop(carried.report)
    return carried


def _confirm(recipe: Recipe, site: Site, read: Mapping[str, Content], folders: Mapping[str, Path]) -> None:
    """Raises Stop DC277 where what was read is not what the recipe pins; a download that is not goes."""
    if wrong := describe.differing(recipe, read):
        for name in wrong:
            whose, _, file = name.rpartition("/")
            forget(folders[whose] / file, site)
        raise Stop(faults.changed_inputs("while it was read", wrong))


def _streamed(recipe: Recipe, site: Site, checked: Inputs, into: Path, early: Begun | None) -> Weights:
    """Merged and quantized in one pass by the worker; by peft before it where only peft merges that kind of adapter."""
    model, names, first = checked.model, list(checked.shards), dict[str, Any]()
    files = {adapter["name"]: Path(adapter["path"]).name for adapter in checked.adapters}
    if checked.by_peft is not None:
        model = into / BETWEEN
        first |= merge(
            checked.by_peft, model,
            interpreter=site.interpreter, lock=site.lock, progress=site.progress, threads=site.threads,
        )  # fmt: skip
        names = list(first["shards"])
        files = {checked.by_peft.adapter.name: weights_file(checked.by_peft.adapter.files)}
    job = {
        "into": str(into.absolute()),
        "model": str(model.absolute()),
        "source": recipe.model_source,
        "shards": names,
        "adapters": list(checked.adapters),
        "quantized": {name: asdict(scheme) for name, scheme in checked.quantized.items()},
        "dtype": recipe.dtype,
        "threads": site.threads,
        "identity": {"tool": __version__, "key": recipe.key},
    }
    files_read = [] if first else [checked.model / name for name in names]
    begun = process.begun(site.interpreter, site.lock, WORKER, LATER) if early is None else nullcontext(early)
    with Digests(files_read, recipe.model_source) as digests, begun as worker:
        result = worker.run(job, digests.watching(site.progress))
        read = digests.contents()
    lines = result["shards"]
    if first:
        shutil.rmtree(model)
        read = {name: Content(**found) for name, found in first["model"].items()}
        seconds = {**first["seconds"], **result["seconds"]}
        result |= {"adapters": first["adapters"], "versions": first["versions"], "seconds": seconds}
    scheme = next(iter(checked.quantized.values()), None)
    return Weights(
        shards={name: Content(line["bytes"], line["sha256"]) for name, line in lines.items()},
        read={f"model/{name}": content for name, content in read.items()}
        | {f"adapters/{name}/{files[name]}": Content(**content) for name, content in result["adapters"].items()},
        quantization=None if scheme is None else quantization_config(scheme, checked.left_alone),
        made=result,
    )


def _calibrated(recipe: Recipe, site: Site, checked: Inputs, plain: Plain, into: Path) -> Weights:
    """By llm-compressor, from the merged model in 16 bit."""
    folder = plain()
    merged = Merged(folder, recipe.model_source, shards(folder), checked.quantized, checked.left_alone)
    made = calibrate(
        recipe, merged, into,
        folder=site.folder, python=site.quantizer, lock=site.lock, progress=site.progress, threads=site.threads,
    )  # fmt: skip
    return Weights(
        shards=made.shards,
        read={f"model/{name}": describe.content(folder / name) for name in merged.shards},
        quantization=made.quantization_config,
        made={"torch": made.torch, "threads": made.threads, "seconds": made.seconds, "versions": made.versions},
        notes=tuple(made.notes),
    )


def _configs(model: Path, adapters: Mapping[str, Path]) -> dict[str, Content]:
    found = {"model/config.json": describe.content(model / "config.json")}
    return found | {
        f"adapters/{n}/adapter_config.json": describe.content(f / "adapter_config.json") for n, f in adapters.items()
    }
