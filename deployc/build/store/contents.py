"""What else lies in a store: builds that are not finished, sources that were downloaded, remains of a removal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build.store.making import BUILDING
from deployc.build.store.shelf import KEY, size
from deployc.files import is_locked

REMOVING = ".removing-"
"""Before the name of what is being removed: a folder under a key's own name is never half there."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A build that is at work, or was interrupted."""

    key: str
    bytes: int
    at_work: bool


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The files of one commit of a hub's repository."""

    hub: str
    source: str
    revision: str
    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class MadeOf:
    """A model (its name is "") or adapter that an artifact was made of."""

    name: str
    source: str
    revision: str | None


def made_of(recipe: Mapping[str, Any]) -> list[MadeOf]:
    """The model and the adapters of a manifest's recipe; what is not as a recipe has it is left out."""
    adapters = recipe.get("adapters")
    rows: list[Any] = [["", recipe.get("model_source"), recipe.get("model_revision")]]
    rows += adapters if isinstance(adapters, list) else []
    found = []
    for row in rows:
        match row:
            case [str(name), str(source), str() | None as revision, *_]:
                found.append(MadeOf(name, source, revision))
    return found


def unfinished(store: Path) -> list[Unfinished]:
    """Every build that has a folder, or a lock that is held."""
    if not store.is_dir():
        return []
    names = (path.name.removeprefix(BUILDING) for path in store.iterdir() if path.name.startswith(BUILDING))
    keys = sorted({name.removesuffix(".lock") for name in names})
    found = [
        Unfinished(key, size(store / f"{BUILDING}{key}"), at_work(store, key)) for key in keys if KEY.fullmatch(key)
    ]
    return [one for one in found if one.at_work or (store / f"{BUILDING}{one.key}").exists()]


def stale_locks(store: Path) -> list[tuple[str, Path]]:
    """Key and file of every lock that a killed build left and nobody holds."""
    locks = [(path.name.removeprefix(BUILDING).removesuffix(".lock"), path) for path in _children(store)]
    known = [(key, path) for key, path in locks if KEY.fullmatch(key) and path.name == f"{BUILDING}{key}.lock"]
    return [(key, path) for key, path in known if not at_work(store, key)]


def at_work(store: Path, key: str) -> bool:
    """Whether a process holds the lock of a key, or may hold it: nothing is changed by looking."""
    try:
        return is_locked(store / f"{BUILDING}{key}.lock")
    except PermissionError:
        return True


def sources(store: Path) -> list[Downloaded]:
    """Every commit that was downloaded, whole or not."""
    root = store / "sources"
    found = []
    for hub in _folders(root):
        for path in _commits(hub, 3):
            source = str(path.parent.relative_to(hub))
            found.append(Downloaded(hub.name, source, path.name, path, size(path)))
    return found


def remains(store: Path) -> list[Path]:
    """What a removal that was cut short has left."""
    return [path for path in (*_children(store), *_under(store / "sources", 4)) if path.name.startswith(REMOVING)]


def _commits(folder: Path, depth: int) -> Iterator[Path]:
    for path in _folders(folder):
        if _COMMIT.fullmatch(path.name):
            yield path
        elif depth:
            yield from _commits(path, depth - 1)


def _under(folder: Path, depth: int) -> Iterator[Path]:
    for path in _folders(folder):
        yield path
        if depth:
            yield from _under(path, depth - 1)


def _folders(folder: Path) -> list[Path]:
    """The folders in one, but not those that links lead to."""
    return [path for path in _children(folder) if path.is_dir() and not path.is_symlink()]


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
