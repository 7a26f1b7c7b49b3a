"""`deployc apply`: walks exactly the plan that is shown, or the one that was reviewed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployc.cli import options, show
from deployc.cli.options import Style
from deployc.diagnostics import ExitCode, Stop, error

if TYPE_CHECKING:
    from deployc.pipeline import Analysis


def command(
    reviewed: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN.JSON]", help="A plan written by `deployc plan -o`; refused if stale."),
    ] = None,
    file: options.File = options.DEFAULT_FILE,
    offline: options.Offline = False,
    assume: options.Assume = None,
    progress: options.Progress = Style.AUTO,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Build what is missing, start it, and check that it answers. Example: deployc apply"""
    import os

    from deployc import pipeline
    from deployc.apply.execute import Job, execute
    from deployc.build.store import locate as store
    from deployc.cli.applying import Telling
    from deployc.cli.building import build
    from deployc.cli.target import ACTS_ON, observe
    from deployc.facts.assume import parsed

    analysis = pipeline.compile(file, offline=offline, assume=parsed(assume or ()))
    if analysis.exit_code != ExitCode.OK or not (analysis.deploy and analysis.bundle and analysis.prediction):
        return _refused(analysis, json, no_color)
    deploy, bundle = analysis.deploy, analysis.bundle
    if deploy.target.kind != ACTS_ON:
        raise Stop(
            error(
                "DC619",
                "this kind of target is not acted on yet",
                f"target.kind: {deploy.target.kind}; this version plans and compiles it, and applies to process.",
                "run `deployc compile -o out` and start what it writes, or set target.kind: process",
                deploy.at("target.kind"),
            )
        )
    made = pipeline.plan_of(analysis, observe)
    if reviewed is not None:
        _same(reviewed, made.document)
    folder, place = file.parent, store(deploy, os.environ)
    style = Style.NONE if json and progress is Style.AUTO else progress
    telling = Telling(style)
    job = Job(
        deploy, bundle, analysis.prediction, folder, place, os.environ, lambda recipe: build(analysis, recipe, style)
    )
    try:
        applied = execute(made, job, telling)
    finally:
        telling.close()
    analysis.report.extend(applied.report)
    endpoint = applied.endpoint
    if json:
        show.json(
            {
                "format_version": "1.0",
                "name": deploy.name,
                "changed": applied.changed,
                "digest": bundle.digest,
                "url": endpoint.url,
                "diagnostics": pipeline.plan_of(analysis).document["diagnostics"],
            }
        )
        return ExitCode.OK
    show.report(analysis.report, no_color=no_color)
    state = "serves" if applied.changed else "serves already; nothing changed"
    show.text(f"{deploy.name} {state}: {endpoint.url}/v1, model {bundle.launches[0].served_name}")
    return ExitCode.OK


def _refused(analysis: Analysis, json: bool, no_color: bool) -> int:
    """Errors stop an apply before anything is touched."""
    from deployc import pipeline

    if json:
        show.json(pipeline.plan_of(analysis).document)
    else:
        show.report(analysis.report, no_color=no_color)
    return analysis.exit_code or ExitCode.FAILED


def _same(reviewed: Path, document: Any) -> None:
    """The reviewed plan must be of the same bundle and see the same target; else it is stale."""
    import json

    try:
        before = json.loads(reviewed.read_text(encoding="utf-8"))
        digest, steps, seen = before["digest"], before["steps"], before["observed"]["digest"]
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else f"it is no plan document ({wrong!r})"
        detail = f"{reviewed}: {why}."
        raise Stop(error("DC198", "the plan cannot be read", detail, "write one with `deployc plan -o`")) from None
    changed = [
        what
        for what, same in (
            ("the file, its lockfile or the tool", digest == document["digest"]),
            ("what runs on the target", seen == document["observed"]["digest"]),
            ("the steps", [s["action"] for s in steps] == [s["action"] for s in document["steps"]]),
        )
        if not same
    ]
    if changed:
        detail = f"{reviewed} was made before these changed: {', '.join(changed)}."
        raise Stop(error("DC199", "the plan is stale", detail, "plan and review again"), ExitCode.REFUSED)
