"""The deploy.yaml of a command that needs its values alone, no facts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from deployc.cli import show

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy


def shaped(file: Path, *, json: bool = False, no_color: bool = False) -> Deploy:
    """Its values; where they were not understood, says why and ends the command with the exit code of that."""
    from deployc import pipeline

    analysis = pipeline.shape(file)
    if analysis.deploy is not None:
        return analysis.deploy
    if json:
        from deployc.plan.document import partial_document

        show.json(partial_document(None, analysis.report))
    else:
        show.report(analysis.report, no_color=no_color)
    raise typer.Exit(analysis.exit_code)
