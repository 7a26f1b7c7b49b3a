"""`deployc store gc`: what can go is shown with its reason, asked for, looked at once more, and removed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployc.cli import show
from deployc.cli.asking import agreed
from deployc.diagnostics import Diagnostic, ExitCode, Report

if TYPE_CHECKING:
    from deployc.build.store.gc import Surplus
    from deployc.pipeline import Analysis


@dataclass(frozen=True, slots=True)
class Collection:
    """What `store gc` was asked for. `states` are further state folders whose histories count."""

    file: Path
    keep: int | None
    states: tuple[Path, ...]
    dry_run: bool
    offline: bool
    assume: tuple[str, ...]
    yes: bool
    json: bool


def collect(asked: Collection) -> int:
    """Do it; the exit code."""
    from deployc import pipeline
    from deployc.build.store.gc import remove
    from deployc.build.store.shelf import locate
    from deployc.facts.assume import parsed

    analysis = pipeline.compile(asked.file, offline=asked.offline, assume=parsed(asked.assume))
    if analysis.deploy is None or analysis.bundle is None or analysis.exit_code == ExitCode.WRONG_FILE:
        _refused(analysis, asked)
        return analysis.exit_code or ExitCode.FAILED
    place = locate(analysis.deploy, os.environ)
    found, told = _surplus(analysis, asked, place)
    report, removed = Report(told), found
    if found and not asked.dry_run:
        if not asked.json:
            show.text(_lines(found, place))
        if not asked.yes and not agreed(f"Remove {'this' if len(found) == 1 else 'these'} from {place}?"):
            show.report(Report(told))
            show.text("nothing was removed; --yes does not ask")
            return ExitCode.INTERRUPTED
        still, told = _surplus(analysis, asked, place)  # what was not needed before the question may be by now
        report, removed = Report(told), []
        for one in found:
            if (one.kind, one.path) in {(again.kind, again.path) for again in still}:
                wrong = remove(place, one)
                removed += [one] if wrong is None else []
                report.extend([wrong] if wrong is not None else [])
    _show(analysis.deploy.name, asked, place, removed, report)
    return ExitCode.FAILED if report.errors else ExitCode.OK


def _surplus(analysis: Analysis, asked: Collection, place: Path) -> tuple[list[Surplus], list[Diagnostic]]:
    from deployc.apply.uses import uses
    from deployc.build.store.gc import Needs, surplus
    from deployc.build.store.shelf import under_keys

    deploy, bundle = analysis.deploy, analysis.bundle
    if deploy is None or bundle is None:
        raise ValueError("what is needed is known of a file that was compiled")
    known = uses(deploy, asked.file.parent, os.environ, under_keys(place), asked.states)
    keep = deploy.rollout.keep if asked.keep is None else asked.keep
    return surplus(place, Needs(frozenset(known.by), bundle.recipe, keep, tuple(known.doubts)))


def _show(name: str, asked: Collection, place: Path, removed: list[Surplus], report: Report) -> None:
    """What went, or would go."""
    if asked.json:
        from deployc.plan.document import diagnostics

        document = {"format_version": "1.0", "name": name, "store": str(place), "dry_run": asked.dry_run}
        rows = {"removed": [_row(one, place) for one in removed], "bytes": sum(one.bytes for one in removed)}
        show.json({**document, **rows, "diagnostics": diagnostics(report)})
        return
    show.report(report)
    if asked.dry_run and removed:
        show.text(_lines(removed, place))
        show.text("nothing was removed: --dry-run")
    elif not removed:
        show.text(f"{place}: nothing to remove")
    else:
        from deployc.units import show_bytes

        show.text(f"{place}: {show_bytes(sum(one.bytes for one in removed))} removed")


def _lines(found: list[Surplus], place: Path) -> str:
    from deployc.views.store import going

    return going([_row(one, place) for one in found])


def _row(one: Surplus, place: Path) -> dict[str, Any]:
    name = str(one.path.relative_to(place)) if one.key is None else f"{one.kind} {one.key[:12]}"
    return {"kind": one.kind, "name": name, "path": str(one.path), "bytes": one.bytes, "why": one.why}


def _refused(analysis: Analysis, asked: Collection) -> None:
    """What the file asks for is not known, so what it needs is not either."""
    if asked.json:
        from deployc.plan.document import partial_document

        name = analysis.deploy.name if analysis.deploy else None
        show.json(partial_document(name, analysis.report))
    else:
        show.report(analysis.report)
