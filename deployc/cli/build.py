"""`deployc build`: merge and quantize into the store, without starting anything."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.cli.options import Style
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE,
    offline: options.Offline = False,
    assume: options.Assume = None,
    progress: options.Progress = Style.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress: the same as --progress none.")] = False,
    no_color: options.NoColor = False,
) -> int:
    """Make the artifact that apply serves. Example: deployc build"""
    from deployc import pipeline
    from deployc.cli.building import build
    from deployc.facts.assume import parsed

    analysis = pipeline.compile(file, offline=offline, assume=parsed(assume or ()))
    show.report(analysis.report, no_color=no_color)
    if analysis.exit_code == ExitCode.WRONG_FILE or analysis.bundle is None:
        return analysis.exit_code
    if analysis.bundle.recipe is None:
        show.text("nothing to build: the model is served as it is")
        return ExitCode.OK
    show.text(str(build(analysis, analysis.bundle.recipe, Style.NONE if quiet else progress).path))
    return ExitCode.OK
