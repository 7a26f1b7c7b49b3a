"""Small artifacts, published into a store without building anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc.build import store
from deployc.build.weights import journal
from deployc.build.weights.safetensors_file import sha256
from deployc.types.manifest import Artifact, Content, Manifest

KEY, OTHER, THIRD = "a" * 64, "b" * 64, "c" * 64
MADE = {"config.json": "{}", "model.safetensors": "weights"}


def artifact(
    place: Path, key: str = KEY, built_at: str = "2030-01-01T00:00:00+00:00", recipe: Mapping[str, Any] | None = None
) -> Artifact:
    """Two small files, published."""
    place.mkdir(exist_ok=True)
    into = store.begin(place, key, 10)
    for name, text in MADE.items():
        (into / name).write_text(text)
    (into / journal.NAME).write_text("{}")
    files = {path.name: Content(path.stat().st_size, sha256(path)) for path in into.iterdir() if path.name in MADE}
    manifest = Manifest(store.FORMAT_VERSION, key, recipe or {}, {}, files, "0", "2", 1, built_at, {})
    return store.publish(place, into, manifest)
