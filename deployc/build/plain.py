"""The same model in 16 bit: what calibration starts from and what quality is measured against."""

from __future__ import annotations

from pathlib import Path

from deployc.build.weights.layout import FLOATS, STORED
from deployc.build.weights.safetensors_file import Reader, shards
from deployc.types.bundle import Recipe


def is_source(recipe: Recipe, model: Path) -> bool:
    """Whether the source itself is that: nothing is merged and no number rounded. Raises Fault DC204."""
    return not recipe.adapters and all(_is_in(model / name, STORED[recipe.dtype]) for name in shards(model))


def _is_in(path: Path, dtype: str) -> bool:
    with Reader(path, str(path.parent)) as reader:
        return all(slot.dtype == dtype for slot in reader.slots if slot.dtype in FLOATS)
