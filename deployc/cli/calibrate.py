"""`deployc calibrate`: the cost model beside what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode, Stop

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def calibrate() -> None:
    """Compare the cost model with measured engine starts and runs, and fit it on them."""


@app.command()
def score(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="JSON lines, one measured start or run a line.")
    ],
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="What another estimator says of these runs, beside this model."),
    ] = None,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Score the cost model on measured rows: memory and speed. Example: deployc calibrate score rows.jsonl --json"""
    import sys

    from deployc.measure import calibrate as measured

    rows, report = measured.read(files)
    other = None
    if against is not None:
        other, faults = measured.estimates(against)
        report.extend(faults)
    document = measured.document(measured.score(rows.starts), measured.score_runs(rows.runs, other), report)
    if json:
        show.json(document)
    else:
        from deployc.views.score import score as view

        if rows:
            show.text(view(document, color=show.color(sys.stdout, no_color), width=show.width(sys.stdout)))
        show.report(report, no_color=no_color)
    return ExitCode.WRONG_FILE if report.errors else ExitCode.OK


@app.command()
def fit(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSON lines: runs, and starts beside them.")],
    write: Annotated[bool, typer.Option("--write", help="Put the fit into the tool's profiles.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that fit side by side.")] = 2,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Fit the speed model on measured runs, and score the fit on rows that it did not see. It takes minutes.

    Example: deployc calibrate fit runs.jsonl starts.jsonl
    """
    import sys

    from deployc.measure import calibrate as measured

    rows, report = measured.read(files)
    made = None
    if not report.errors:
        try:
            made = measured.fitting(rows.runs, workers)
        except Stop as stop:
            report.extend(stop.report)
    document = measured.fit_document(made, report)
    if json:
        show.json(document)
    else:
        from deployc.views.speed_fit import speed_fit as view

        if made is not None:
            show.text(view(document, color=show.color(sys.stdout, no_color), width=show.width(sys.stdout)))
        show.report(report, no_color=no_color)
    if made is not None and write:
        measured.write_profile(made.entry)
    return ExitCode.WRONG_FILE if report.errors else ExitCode.OK
