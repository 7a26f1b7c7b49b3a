"""`deployc plan`: the bill of memory, the SLA, the steps; what would happen before it happens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the plan document here as well.")] = None,
    offline: options.Offline = False,
    assume: options.Assume = None,
    no_target: Annotated[bool, typer.Option("--no-target", help="Do not look at what runs now.")] = False,
    json: options.Json = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 2 where apply would change something.")
    ] = False,
    no_color: options.NoColor = False,
) -> int:
    """Say what a deploy.yaml costs and does, before it runs. Example: deployc plan --offline"""
    from deployc import pipeline
    from deployc.cli.target import ACTS_ON, observe
    from deployc.facts.assume import parsed
    from deployc.views.json_text import json_text

    analysis = pipeline.compile(file, offline=offline, assume=parsed(assume or ()))
    made = pipeline.plan_of(analysis, None if offline or no_target else observe)
    if output is not None:
        read = analysis.document.inputs if analysis.document else {}
        keep = [file, pipeline.lock_path(file), *(file.parent / name for name in read)]
        show.written(output, json_text(made.document), keep)
    if json:
        show.json(made.document)
    else:
        applies = analysis.deploy is not None and analysis.deploy.target.kind == ACTS_ON
        show.plan(made.document, analysis.report, file=str(file), applies=applies, no_color=no_color)
    if analysis.exit_code == ExitCode.OK and detailed_exitcode and made.changes:
        return ExitCode.CHANGES
    return analysis.exit_code
