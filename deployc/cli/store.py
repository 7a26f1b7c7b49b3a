"""`deployc store`: the artifacts that were built on this host, whether they are whole, and those that can go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployc.cli import options, show
from deployc.cli.shaped import shaped
from deployc.diagnostics import ExitCode, Report

if TYPE_CHECKING:
    from deployc.types.manifest import Artifact

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def store() -> None:
    """Artifacts in the store of a deploy.yaml."""


@app.command("list")
def listing(file: options.File = options.DEFAULT_FILE, json: options.Json = False) -> int:
    """List the finished artifacts, the latest first, and who uses them. Example: deployc store list"""
    from deployc.apply.uses import uses
    from deployc.build.store import artifacts, contents, damaged, locate
    from deployc.views.store import listing as view

    deploy = shaped(file, json=json)
    place = locate(deploy, os.environ)
    found = artifacts(place)
    known = uses(deploy, file.parent, os.environ, [artifact.manifest.key for artifact in found])
    report = Report([*damaged(place), *known.doubts])
    document = {
        "format_version": "1.0",
        "name": deploy.name,
        "store": str(place),
        "artifacts": [_described(artifact, known.by.get(artifact.manifest.key, [])) for artifact in found],
        "unfinished": [
            {"key": one.key, "bytes": one.bytes, "at_work": one.at_work} for one in contents.unfinished(place)
        ],
        "sources": [
            {"hub": one.hub, "source": one.source, "revision": one.revision, "bytes": one.bytes, "path": str(one.path)}
            for one in contents.sources(place)
        ],
    }
    if json:
        show.json(document | {"diagnostics": _diagnostics(report)})
    else:
        show.text(view(document))
        show.report(report)
    return ExitCode.OK


@app.command()
def verify(
    key: Annotated[
        str | None, typer.Argument(help="The first digits of one artifact's key; all of them where left out.")
    ] = None,
    file: options.File = options.DEFAULT_FILE,
    json: options.Json = False,
) -> int:
    """Read every byte and compare with the manifest. Example: deployc store verify"""
    from deployc.build.store import artifacts, damaged, faults, locate
    from deployc.build.store import verify as check

    deploy = shaped(file, json=json)
    place = locate(deploy, os.environ)
    report = Report(damaged(place)) if key is None else Report()
    chosen = [a for a in artifacts(place) if key is None or a.manifest.key.startswith(key)]
    rows = []
    for artifact in chosen:
        wrong = check(place, artifact.manifest.key)
        report.extend(wrong)
        rows.append({"key": artifact.manifest.key, "path": str(artifact.path), "whole": not wrong})
        if not json:
            show.text(f"{artifact.manifest.key[:12]}  {'damaged' if wrong else 'as it was built'}")
    if key is not None and not chosen:
        report.add(faults.no_such_artifact(place, key))
    if json:
        document = {"format_version": "1.0", "name": deploy.name, "store": str(place), "artifacts": rows}
        show.json(document | {"diagnostics": _diagnostics(report)})
    elif not chosen and key is None:
        show.text(f"{place}: no artifacts")
    if not json:
        show.report(report)
    return ExitCode.FAILED if report.errors else ExitCode.OK


@app.command()
def gc(
    file: options.File = options.DEFAULT_FILE,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=0, help="Newest artifacts that stay unused.", show_default="rollout.keep"),
    ] = None,
    state: Annotated[
        list[Path] | None,
        typer.Option(
            "--state", exists=True, file_okay=False, help="A target.state of another deploy.yaml; repeatable."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and remove nothing.")] = False,
    offline: options.Offline = False,
    assume: options.Assume = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> int:
    """Remove what no deployment's history and no build needs. Example: deployc store gc --dry-run"""
    from deployc.cli.collecting import Collection, collect

    return collect(Collection(file, keep, tuple(state or ()), dry_run, offline, tuple(assume or ()), yes, json))


def _described(artifact: Artifact, used_by: list[str]) -> dict[str, Any]:
    """An artifact as `store list --json` has it; the recipe is as its manifest says, which may be of an older tool."""
    from deployc.build.store.contents import made_of
    from deployc.facts.codec import encode

    made, of = artifact.manifest, made_of(artifact.manifest.recipe)
    return {
        "key": made.key,
        "bytes": made.bytes,
        "built_at": made.built_at,
        "path": str(artifact.path),
        "made_of": [{"name": one.name, "source": one.source, "revision": one.revision} for one in of],
        "weights": str(made.recipe.get("weights", "")),
        "dtype": str(made.recipe.get("dtype", "")),
        "quality": encode(made.quality) if made.quality is not None else None,
        "tool": made.tool,
        "torch": made.torch,
        "versions": dict(made.versions),
        "seconds": dict(made.seconds),
        "used_by": used_by,
    }


def _diagnostics(report: Report) -> Any:
    from deployc.plan.document import diagnostics

    return diagnostics(report)
