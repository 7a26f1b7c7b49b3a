"""`deployc doctor`: what a user describes of a server, or what its log says, beside what is predicted of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode, Report


def command(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="A running server. Not there yet.")] = None,
    describe: Annotated[
        Path | None, typer.Option("--describe", metavar="FILE", help="A YAML file that says what was seen.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="What the engine printed, as `docker logs` gives it; - reads it."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A deploy.yaml: what it plans stands beside what was seen.")
    ] = None,
    offline: options.Offline = False,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Say why a server is slow or did not start. Example: deployc doctor --log engine.log -f deploy.yaml"""
    if log is not None:
        if url is not None or describe is not None:
            raise typer.BadParameter("--log is looked at alone: leave out URL and --describe")
        return _log(log, file, offline=offline, json=json, no_color=no_color)
    if url is not None:
        raise typer.BadParameter(
            "a running server cannot be looked at yet; describe what was seen in a file, and give it with --describe"
        )
    if describe is None:
        raise typer.BadParameter(
            "nothing to look at: give --log FILE (what the engine printed), or --describe FILE (what you see)"
        )
    from deployc import pipeline

    diagnosis, report = pipeline.diagnose(describe, like=file, offline=offline)
    if diagnosis is None:
        return _nothing(report, json=json, no_color=no_color)
    from deployc.measure.doctor.judge import document

    made = document(diagnosis, report)
    if json:
        show.json(made)
    else:
        from deployc.views.doctor import doctor as view

        show.text(view(made, report, color=show.color(sys.stdout, no_color), width=show.width(sys.stdout)))
    return ExitCode.OK  # figures that contradict one another are what it was asked to find


def _log(log: Path, file: Path | None, *, offline: bool, json: bool, no_color: bool) -> int:
    from deployc import pipeline
    from deployc.measure.doctor.log.document import document
    from deployc.measure.doctor.log.shown import shown_against, shown_facts
    from deployc.views.log import log as view

    told, report = pipeline.diagnose_log(log, like=file, offline=offline)
    if told is None:
        return _nothing(report, json=json, no_color=no_color)
    made = document(told, report)
    if json:
        show.json(made)
    else:
        out = sys.stdout
        facts, against = shown_facts(told.reading), shown_against(told.figures)
        show.text(view(made, report, facts, against, color=show.color(out, no_color), width=show.width(out)))
    # what failed is what it was asked to find; a deploy.yaml of which nothing can be predicted is not
    return ExitCode.OK if file is None or told.planned else ExitCode.WRONG_FILE


def _nothing(report: Report, *, json: bool, no_color: bool) -> int:
    if json:
        from deployc.plan.document import partial_document

        show.json(partial_document(None, report))
    else:
        show.report(report, no_color=no_color)
    return ExitCode.WRONG_FILE
