"""`deployc lock`: pins model, adapters, cards and catalogue beside the file, so that plans need no network."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Ask the hubs again instead of keeping pins.")] = False,
    assume: options.Assume = None,
    no_color: options.NoColor = False,
) -> int:
    """Write the lockfile beside a deploy.yaml. Example: deployc lock"""
    import os

    from deployc import pipeline
    from deployc.facts import update
    from deployc.facts.assume import parsed

    analysis, assumed = pipeline.shape(file), parsed(assume or ())
    if analysis.deploy is not None and not analysis.report.errors:
        path = pipeline.lock_path(file)
        analysis.report.extend(update(analysis.deploy, path, upgrade=upgrade, env=os.environ, assume=assumed))
        if not analysis.report.errors:
            show.text(f"{path}: written")
    show.report(analysis.report, no_color=no_color)
    return ExitCode.WRONG_FILE if analysis.report.errors else ExitCode.OK
