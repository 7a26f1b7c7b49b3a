"""Making an artifact on behalf of a command, with its progress shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deployc.cli import show
from deployc.cli.options import Style
from deployc.cli.progress import progress
from deployc.diagnostics import Report

if TYPE_CHECKING:
    from deployc.pipeline import Analysis
    from deployc.types.bundle import Recipe
    from deployc.types.manifest import Artifact


def build(analysis: Analysis, recipe: Recipe, style: Style = Style.AUTO) -> Artifact:
    """The recipe's artifact, made where the store has none; raises Stop. Notes of the build go to standard error."""
    from deployc.apply.engine_env import locate as engine_environment
    from deployc.apply.quantizer import locate_quantizer
    from deployc.build.build import build as make
    from deployc.build.store import locate as store
    from deployc.facts.opening import access

    deploy, folder, report = analysis.deploy, analysis.path.parent, Report()
    if deploy is None:
        raise ValueError("a recipe comes from a file that was understood")
    prefix, _ = engine_environment(deploy, folder, os.environ)
    hub = access(deploy, os.environ, report)
    with progress(style) as watch:
        artifact = make(
            recipe,
            folder=folder,
            store=store(deploy, os.environ),
            python=None if deploy.build.python == "auto" else deploy.build.python,
            engine_python=str(prefix / "bin" / "python") if prefix else None,
            progress=watch,
            access=hub,
            quantizer=locate_quantizer(os.environ),
        )
    show.report(Report([*report, *artifact.notes]))
    return artifact
