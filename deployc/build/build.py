"""BUILD: from a recipe to an artifact in the store, once for each key, however many ask for it at once.

The tool's own process never imports torch: it checks, copies the small files and publishes; the worker writes weights.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployc import __version__
from deployc.build import faults, inputs, process
from deployc.build import store as shelf
from deployc.build.inputs import Inputs
from deployc.build.quantize.config import quantization_config
from deployc.build.weights.safetensors_file import Reader, sha256
from deployc.diagnostics import Report, Stop
from deployc.facts.adapter import WEIGHTS
from deployc.facts.faults import Fault
from deployc.facts.headers import INDEX
from deployc.facts.model import SINGLE
from deployc.facts.source import is_folder
from deployc.files import beside, write
from deployc.types.bundle import Recipe
from deployc.types.manifest import Artifact, Content, Manifest, Progress

if TYPE_CHECKING:
    from deployc.facts.opening import Access

Watch = Callable[[Progress], None]


def build(
    recipe: Recipe,
    *,
    folder: Path,
    store: Path,
    python: str | None,
    engine_python: str | None,
    progress: Watch,
    access: Access | None = None,
    threads: int | None = None,
) -> Artifact:
    """The recipe's artifact: the one in the store, or a new one. Raises Stop; an interrupted build is gone on with.

    `folder` is that of the deploy.yaml; `python` is build.python where the file sets it, relative to that folder;
    `engine_python` that of the engine environment where there is one. `access` is needed where model or adapters lie
    on a hub. `threads` None is one a core.
    """
    with shelf.held(store, recipe.key, lambda: progress(Progress("wait", item=recipe.key))) as lock:
        if (found := shelf.artifact_for(store, recipe.key)) is not None:
            return found
        named = str(beside(folder, python)) if python and "/" in python else python
        interpreter = process.interpreter(named, engine_python)
        try:
            return _build(recipe, folder, store, interpreter, lock, progress, access, threads)
        except Fault as damaged:
            raise Stop(damaged.diagnostic) from None
        except OSError as wrong:
            fault = faults.disk_full if wrong.errno in faults.FULL else faults.no_access
            stop = Stop(fault(str(wrong.filename or store), wrong.strerror or str(wrong)))
            _clear(store, recipe.key, stop)
            raise stop from None
        except Stop as stop:
            _clear(store, recipe.key, stop)
            raise


def _build(
    recipe: Recipe,
    folder: Path,
    place: Path,
    interpreter: str,
    lock: int,
    progress: Watch,
    access: Access | None,
    threads: int | None,
) -> Artifact:
    started = time.monotonic()
    model, adapters = _folders(recipe, folder, place, access, progress)
    fetched = time.monotonic()
    checked = inputs.check(recipe, model, adapters)
    small = _small_files(recipe, checked)
    into = shelf.begin(place, recipe.key, checked.bytes + sum(len(content) for content in small.values()))
    result = process.run(interpreter, _job(recipe, checked, into, threads), lock, progress)
    if checked.shards != (SINGLE,):
        small[INDEX] = _index(into, checked.shards)
    for name, content in small.items():
        write(into / name, content, shelf.READABLE)
    seconds = {"fetch": fetched - started, **result["seconds"], "total": time.monotonic() - started}
    files = {name: _content(into / name) for name in small}
    manifest = _manifest(recipe, checked, adapters, files, {**result, "seconds": seconds})
    _confirm(recipe, manifest)
    return replace(shelf.publish(place, into, manifest), notes=checked.notes)


def _folders(
    recipe: Recipe, folder: Path, place: Path, access: Access | None, progress: Watch
) -> tuple[Path, dict[str, Path]]:
    """The model's folder and the adapters', fetched into the store where they lie on a hub."""

    def local(source: str, revision: str | None, pins: Mapping[str, str]) -> Path:
        if is_folder(source):
            return beside(folder, source)
        from deployc.build.hub import fetch

        return fetch(source, revision, pins, access, place, progress)

    model = local(recipe.model_source, recipe.model_revision, recipe.model_files)
    return model, {
        name: local(source, revision, inputs.pins_of(recipe, name)) for name, source, revision, _ in recipe.adapters
    }


def _small_files(recipe: Recipe, checked: Inputs) -> dict[str, bytes]:
    """All files of the artifact but its weights and manifest."""
    config = dict(checked.config)
    for key in [key for key in ("dtype", "torch_dtype") if key in config] or ["dtype"]:
        config[key] = recipe.dtype
    if checked.quantized:
        scheme = next(iter(checked.quantized.values()))
        config["quantization_config"] = quantization_config(scheme, checked.left_alone)
    files = {name: (checked.model / name).read_bytes() for name in checked.copied}
    return files | {"config.json": _json(config)}


def _job(recipe: Recipe, checked: Inputs, into: Path, threads: int | None) -> dict[str, Any]:
    return {
        "into": str(into.absolute()),
        "model": str(checked.model.absolute()),
        "source": recipe.model_source,
        "shards": list(checked.shards),
        "adapters": list(checked.adapters),
        "quantized": {name: asdict(scheme) for name, scheme in checked.quantized.items()},
        "dtype": recipe.dtype,
        "threads": threads,
        "identity": {"tool": __version__, "key": recipe.key},
    }


def _index(into: Path, shards: tuple[str, ...]) -> bytes:
    """`model.safetensors.index.json` of what was written."""
    placed: dict[str, str] = {}
    total = 0
    for name in shards:
        with Reader(into / name, str(into)) as reader:
            placed |= {slot.name: name for slot in reader.slots}
            total += sum(slot.end - slot.begin for slot in reader.slots)
    return _json({"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))})


def _manifest(
    recipe: Recipe,
    checked: Inputs,
    adapters: Mapping[str, Path],
    files: Mapping[str, Content],
    result: Mapping[str, Any],
) -> Manifest:
    """What was read and written, by content; `files` are those that the worker did not write."""
    lines = result["shards"]
    read = {f"model/{name}": Content(line["read"], line["input"]) for name, line in lines.items()}
    for name in (*checked.copied, "config.json"):
        read[f"model/{name}"] = _content(checked.model / name)
    for name, folder in adapters.items():
        read[f"{name}/{WEIGHTS}"] = Content(**result["adapters"][name])
        read[f"{name}/adapter_config.json"] = _content(folder / "adapter_config.json")
    written = {name: Content(line["bytes"], line["sha256"]) for name, line in lines.items()}
    return Manifest(
        format_version=shelf.FORMAT_VERSION,
        key=recipe.key,
        recipe=json.loads(json.dumps(asdict(recipe))),  # as it is read back
        inputs=dict(sorted(read.items())),
        files=dict(sorted({**written, **files}.items())),
        tool=__version__,
        torch=result["torch"],
        threads=result["threads"],
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds={phase: round(value, 3) for phase, value in result["seconds"].items()},
    )


def _confirm(recipe: Recipe, manifest: Manifest) -> None:
    """What was read is what the recipe pins by its whole content. Raises Stop DC277."""
    pins = {f"model/{name}": pin for name, pin in recipe.model_files.items()} | dict(recipe.adapter_files)
    wrong = [
        name
        for name, content in manifest.inputs.items()
        if (pin := pins.get(name, "")).startswith("sha256:") and pin != f"sha256:{content.sha256}"
    ]
    if wrong:
        raise Stop(faults.changed_inputs("while it was read", wrong))


def _clear(place: Path, key: str, stop: Stop) -> None:
    """Finished shards stay for the next try, unless they fill the disk or were made from something else."""
    if any(d.code in ("DC273", "DC277") for d in Report(list(stop.report)).errors):
        shelf.abandon(place, key)


def _content(path: Path) -> Content:
    return Content(path.stat().st_size, sha256(path))


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
