"""BUILD: from a recipe to an artifact in the store, once for each key, however many ask for it at once.

The tool's own process never imports torch: it checks, writes the small files and publishes; workers write weights.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deployc.build import faults
from deployc.build import store as shelf
from deployc.build.make import make
from deployc.build.plain import is_source
from deployc.build.quality.measure import measure, needed, with_quality
from deployc.build.site import Site, Watch
from deployc.build.sources import model_folder
from deployc.diagnostics import Report, Stop
from deployc.emit.recipe import sixteen_bit
from deployc.facts.faults import Fault
from deployc.rules.quality import gate
from deployc.types.bundle import Recipe
from deployc.types.manifest import Artifact, Progress

if TYPE_CHECKING:
    from deployc.facts.opening import Access


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
    quantizer: Path | None = None,
) -> Artifact:
    """The recipe's artifact, measured where the recipe asks for it: the one in the store, or a new one.

    Arguments as of `Site`. Raises Stop; an interrupted build is gone on with. An artifact that breaks a limit on
    quality stays in the store with its figures (DC267), so that another limit needs no other build.
    """
    with shelf.held(store, recipe.key, lambda: progress(Progress("wait", item=recipe.key))) as lock:
        site = Site(folder, store, python, engine_python, quantizer, lock, progress, access, threads)
        try:
            made = shelf.artifact_for(store, recipe.key) or make(recipe, site, lambda: _plain(recipe, site))
            return _measured(recipe, made, site)
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


def _measured(recipe: Recipe, made: Artifact, site: Site) -> Artifact:
    """The artifact with its quality in the manifest. Raises Stop DC267 where that breaks a limit."""
    if recipe.quality is None or recipe.weights == "none":
        return made
    notes = list(made.notes)
    if needed(made.manifest, recipe.quality):
        plain = _plain(recipe, site)
        quality, report = measure(
            recipe.quality, plain, made.path, site.folder, site.interpreter, site.lock, site.progress
        )
        made = replace(made, manifest=with_quality(site.store, made.manifest, quality))
        notes += list(report)
    if made.manifest.quality is None:
        raise ValueError(f"{recipe.key} was measured and has no figures")
    found = Report(gate(made.manifest.quality, recipe.quality))
    if found.errors:
        raise Stop(found)
    return replace(made, notes=(*notes, *found))


def _plain(recipe: Recipe, site: Site) -> Path:
    """The folder of the same model in 16 bit: the source itself where nothing is merged and no number is rounded."""
    wanted = sixteen_bit(recipe)
    if not wanted.adapters and is_source(recipe, folder := model_folder(recipe, site)):
        return folder
    made = build(
        wanted,
        folder=site.folder,
        store=site.store,
        python=site.python,
        engine_python=site.engine_python,
        progress=site.progress,
        access=site.access,
        threads=site.threads,
    )
    return made.path


def _clear(place: Path, key: str, stop: Stop) -> None:
    """Finished shards stay for the next try, unless they fill the disk or were made from something else."""
    if any(d.code in ("DC273", "DC277") for d in stop.report.errors):
        shelf.abandon(place, key)
