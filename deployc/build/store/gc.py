"""What nothing needs any more, and its removal. What is not sure to be needless stays, and the reason is told."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deployc.build.store import contents, faults, shelf
from deployc.build.store.making import BUILDING, Busy, held, refuse
from deployc.build.weights.safetensors_file import sync
from deployc.diagnostics import Diagnostic, Stop
from deployc.types.bundle import Recipe
from deployc.types.manifest import Artifact


@dataclass(frozen=True, slots=True)
class Needs:
    """What keeps an artifact. `used` are keys that deployments or processes name; `current` is the file's own recipe.

    `keep` is how many of the newest artifacts stay that nothing else keeps. `doubts` say why more may be in use than
    `used` says; then nothing under a key's own name goes.
    """

    used: Collection[str]
    current: Recipe | None
    keep: int
    doubts: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Surplus:
    """One thing that can go: its place, bytes, and why. `key` is that of what is locked while it goes."""

    kind: Literal["unfinished", "damaged", "artifact", "source", "remains"]
    path: Path
    bytes: int
    why: str
    key: str | None = None


def surplus(store: Path, needs: Needs) -> tuple[list[Surplus], list[Diagnostic]]:
    """All that can go, and why other things cannot be told."""
    found = [
        Surplus("remains", path, shelf.size(path), "its removal was cut short") for path in contents.remains(store)
    ]
    found += [
        Surplus("remains", path, 0, "the lock of a build that was killed", key)
        for key, path in contents.stale_locks(store)
    ]
    builds = contents.unfinished(store)
    working = [build.key[:12] for build in builds if build.at_work]
    for build in builds:
        if not build.at_work:
            path = store / f"{BUILDING}{build.key}"
            found.append(Surplus("unfinished", path, build.bytes, "unfinished, and nobody builds it", build.key))
    for key, why in shelf.broken(store).items():
        if key not in needs.used and not needs.doubts:
            found.append(Surplus("damaged", store / key, shelf.size(store / key), f"no artifact: {why}", key))
    artifacts = shelf.artifacts(store)
    going = [] if needs.doubts or working else _needless(artifacts, needs)
    why = "no deployment's history has it, and it is not what deploy.yaml asks for"
    found += [Surplus("artifact", a.path, a.manifest.bytes, why, a.manifest.key) for a in going]
    told = list(needs.doubts)
    if working:  # it may read any of them: the 16-bit model that another is made of, or measured against
        told.append(faults.at_work(f"the build of {', '.join(working)}", "no artifact and no source is removed"))
    else:
        found += _sources(store, [a for a in artifacts if a not in going], needs.current)
    return found, told


def remove(store: Path, gone: Surplus) -> Diagnostic | None:
    """Remove one thing; DC290 where it came into use, DC291 where it cannot be removed.

    It loses its name first, so that a removal that is cut short leaves nothing that looks whole.
    """
    try:
        if gone.key is None:
            _remove(gone.path)
            _prune(gone.path.parent, store / "sources")
        else:
            with held(store, gone.key, refuse):
                _remove(gone.path)
    except Busy:
        return faults.at_work(f"the build of {(gone.key or '')[:12]}", "it is left as it is")
    except Stop as stop:
        return next(iter(stop.report))
    except OSError as wrong:
        return faults.not_removed(Path(wrong.filename or gone.path), wrong.strerror or str(wrong))
    return None


def _needless(artifacts: list[Artifact], needs: Needs) -> list[Artifact]:
    """Those that nothing keeps, but for the newest among them."""
    current = needs.current.key if needs.current else None
    return [a for a in artifacts if a.manifest.key not in needs.used and a.manifest.key != current][
        max(needs.keep, 0) :
    ]


def _sources(store: Path, kept: list[Artifact], current: Recipe | None) -> Iterator[Surplus]:
    needed = {(made.source, made.revision) for a in kept for made in contents.made_of(a.manifest.recipe)}
    if current is not None:
        needed |= {(current.model_source, current.model_revision)}
        needed |= {(source, revision) for _, source, revision, _ in current.adapters}
    for one in contents.sources(store):
        if (one.source, one.revision) not in needed:
            why = "no artifact that stays was made of it, nor will the one be that deploy.yaml asks for"
            yield Surplus("source", one.path, one.bytes, why)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if not path.name.startswith(contents.REMOVING):
        aside = path.with_name(f"{contents.REMOVING}{path.name}")
        if aside.exists():
            shutil.rmtree(aside)
        path = path.rename(aside)
        sync(path.parent)
    shutil.rmtree(path)


def _prune(folder: Path, root: Path) -> None:
    """Remove folders that are empty now, up to `root` and with it."""
    while folder.is_relative_to(root) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
