"""What the worker is told of adapters: the parts of each by tensor, decided from headers; values are compared where
the outcome hangs on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deployc.build.merge.same import Places, compare
from deployc.build.weights.safetensors_file import Reader
from deployc.facts.adapter import WEIGHTS, weights_file
from deployc.facts.adapter.pickled import Placed, places
from deployc.facts.folder import Folder
from deployc.rules.adapter_shapes import Merged, merged
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.merging import Part


def merge_of(model: ModelFacts, adapters: Sequence[AdapterFacts], folders: Mapping[str, Path]) -> Merged:
    """The merge of adapters that fit the model; `folders` by their names. Raises Fault DC204, DC232; OSError."""
    files = [(path, _places(adapter.name, path)) for adapter in adapters for path in [_path(adapter, folders)]]

    def same(i: int, one: Part, j: int, other: Part) -> bool:
        return compare(files, i, one, j, other)

    return merged(model, adapters, None, same)


def entries(
    merge: Merged, adapters: Sequence[AdapterFacts], folders: Mapping[str, Path], weights: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The job's `adapters`: name, path, weight, parts, borrowed."""
    return [
        {
            "name": adapter.name,
            "path": str(_path(adapter, folders).absolute()),
            "weight": weights[adapter.name],
            "parts": [asdict(part) for part in parts],
            "borrowed": dict(merge.borrowed),
        }
        for adapter, parts in zip(adapters, merge.parts, strict=True)
    ]


def _path(adapter: AdapterFacts, folders: Mapping[str, Path]) -> Path:
    return folders[adapter.name] / weights_file(adapter.files)


def _places(name: str, path: Path) -> Places:
    if path.name == WEIGHTS:
        with Reader(path, name) as reader:
            return {slot.name: Placed(slot.dtype, slot.shape, slot.begin, slot.end) for slot in reader.slots}
    folder = Folder(path.parent, name)
    return places(name, name, path.stat().st_size, lambda begin, end: folder.range(path.name, begin, end))
