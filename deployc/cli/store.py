"""`deployc store`: the artifacts that were built on this host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployc.cli import options, show
from deployc.cli.shaped import shaped
from deployc.diagnostics import ExitCode, Report

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def store() -> None:
    """Artifacts in the store of a deploy.yaml."""


@app.command("list")
def listing(file: options.File = options.DEFAULT_FILE, json: options.Json = False) -> int:
    """List the finished artifacts, the latest first. Example: deployc store list"""
    from deployc.build.store import artifacts, damaged
    from deployc.units import show_bytes

    place = _place(file, json)
    found, report = artifacts(place), Report(damaged(place))
    if json:
        from deployc.plan.document import diagnostics

        rows = [
            {"key": a.manifest.key, "bytes": a.manifest.bytes, "built_at": a.manifest.built_at, "path": str(a.path)}
            for a in found
        ]
        show.json({"format_version": "1.0", "artifacts": rows, "diagnostics": diagnostics(report)})
        return ExitCode.OK
    for artifact in found:
        made = artifact.manifest
        source = f"{made.recipe['model_source']} {made.recipe['weights']}"
        show.text(f"{made.key[:12]}  {show_bytes(made.bytes):>9}  {made.built_at}  {source}")
    show.report(report)
    if not found:
        show.text(f"{place}: no artifacts")
    return ExitCode.OK


@app.command()
def verify(
    key: Annotated[
        str | None, typer.Argument(help="The first digits of one artifact's key; all of them where left out.")
    ] = None,
    file: options.File = options.DEFAULT_FILE,
) -> int:
    """Read every byte and compare with the manifest. Example: deployc store verify"""
    from deployc.build.store import artifacts, damaged
    from deployc.build.store import verify as check

    place = _place(file)
    report = Report(damaged(place)) if key is None else Report()
    chosen = [a for a in artifacts(place) if key is None or a.manifest.key.startswith(key)]
    for artifact in chosen:
        wrong = check(place, artifact.manifest.key)
        report.extend(wrong)
        show.text(f"{artifact.manifest.key[:12]}  {'damaged' if wrong else 'as it was built'}")
    if not chosen:
        show.text(f"{place}: no such artifact" if key else f"{place}: no artifacts")
    show.report(report)
    return ExitCode.FAILED if report.errors or (key and not chosen) else ExitCode.OK


def _place(file: Path, json: bool = False) -> Path:
    import os

    from deployc.build.store import locate

    return locate(shaped(file, json=json), os.environ)
