"""`deployc doctor`: what a user describes of a server, beside what is predicted of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="A running server. Not there yet.")] = None,
    describe: Annotated[
        Path | None, typer.Option("--describe", metavar="FILE", help="A YAML file that says what was seen.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A deploy.yaml whose lockfile has the model's facts.")
    ] = None,
    offline: options.Offline = False,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Say why a server is slow or does not start. Example: deployc doctor --describe seen.yaml"""
    if url is not None:
        raise typer.BadParameter(
            "a running server cannot be looked at yet; describe what was seen in a file, and give it with --describe"
        )
    if describe is None:
        raise typer.BadParameter("nothing to look at: give --describe FILE (gpu, model, and what was seen)")
    from deployc import pipeline

    diagnosis, report = pipeline.diagnose(describe, like=file, offline=offline)
    if diagnosis is None:
        if json:
            from deployc.plan.document import partial_document

            show.json(partial_document(None, report))
        else:
            show.report(report, no_color=no_color)
        return ExitCode.WRONG_FILE
    from deployc.measure.doctor.judge import document

    made = document(diagnosis, report)
    if json:
        show.json(made)
    else:
        from deployc.views.doctor import doctor as view

        show.text(view(made, report, color=show.color(sys.stdout, no_color), width=show.width(sys.stdout)))
    return ExitCode.OK  # figures that contradict one another are what it was asked to find
