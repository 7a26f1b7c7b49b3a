"""What lies beside the weights of an artifact: config.json, the index, the manifest of what was read and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deployc import __version__
from deployc.build import store as shelf
from deployc.build.tokenizer.small import written
from deployc.build.weights.safetensors_file import Reader, sha256
from deployc.types.bundle import Recipe
from deployc.types.manifest import Content, Manifest


def config_json(
    config: Mapping[str, Any], dtype: str, quantization: Mapping[str, Any] | None, changes: Mapping[str, Any]
) -> bytes:
    """The model's config.json with `changes`, in the dtype that is written, saying how it is quantized."""
    made = {**config, **changes}
    for key in [key for key in ("dtype", "torch_dtype") if key in made] or ["dtype"]:
        made[key] = dtype
    if quantization is not None:
        made["quantization_config"] = dict(quantization)
    return written(made)


def index_json(into: Path, shards: Iterable[str]) -> bytes:
    """`model.safetensors.index.json` of what was written."""
    placed: dict[str, str] = {}
    total = 0
    for name in shards:
        with Reader(into / name, str(into)) as reader:
            placed |= {slot.name: name for slot in reader.slots}
            total += sum(slot.end - slot.begin for slot in reader.slots)
    return written({"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))})


def manifest(
    recipe: Recipe, inputs: Mapping[str, Content], files: Mapping[str, Content], made: Mapping[str, Any]
) -> Manifest:
    """What was read and written, by content; `made` says with which torch, threads and versions, in what time."""
    return Manifest(
        format_version=shelf.FORMAT_VERSION,
        key=recipe.key,
        recipe=json.loads(json.dumps(asdict(recipe))),  # as it is read back
        inputs=dict(sorted(inputs.items())),
        files=dict(sorted(files.items())),
        tool=__version__,
        torch=made["torch"],
        threads=made["threads"],
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds={phase: round(value, 3) for phase, value in made["seconds"].items()},
        versions=dict(made.get("versions", {})),
    )


def differing(recipe: Recipe, read: Mapping[str, Content]) -> list[str]:
    """What was read and is not what the recipe pins by its whole content."""
    pins = {f"model/{name}": pin for name, pin in recipe.model_files.items()}
    pins |= {f"adapters/{name}": pin for name, pin in recipe.adapter_files.items()}
    return [
        name
        for name, content in read.items()
        if (pin := pins.get(name, "")).startswith("sha256:") and pin != f"sha256:{content.sha256}"
    ]


def content(path: Path) -> Content:
    """A file's size and digest."""
    return Content(path.stat().st_size, sha256(path))
