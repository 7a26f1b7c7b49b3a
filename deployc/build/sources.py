"""The folders of a recipe's model and adapters, fetched into the store where they lie on a hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deployc.build.inputs import pins_of
from deployc.build.site import Site
from deployc.facts.source import is_folder
from deployc.files import beside
from deployc.types.bundle import Recipe


def model_folder(recipe: Recipe, site: Site) -> Path:
    """That of the model. Raises Stop: what the hub answers."""
    return _local(recipe.model_source, recipe.model_revision, recipe.model_files, site)


def adapter_folders(recipe: Recipe, site: Site) -> dict[str, Path]:
    """Name -> folder of every adapter, in their order. Raises Stop as `model_folder` does."""
    return {
        name: _local(source, revision, pins_of(recipe, name), site) for name, source, revision, _ in recipe.adapters
    }


def forget(path: Path, site: Site) -> None:
    """Remove a file that was downloaded, so that the next build fetches it again; the user's own files stay."""
    if path.is_relative_to(site.store / "sources"):
        path.unlink(missing_ok=True)


def _local(source: str, revision: str | None, pins: Mapping[str, str], site: Site) -> Path:
    if is_folder(source):
        return beside(site.folder, source)
    from deployc.build.hub import fetch

    return fetch(source, revision, pins, site.access, site.store, site.progress)
