"""`deployc tune`: the cheapest configuration that meets the SLA, the front, and the choice put into the file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode, Stop, error

if TYPE_CHECKING:
    from deployc.choose.tune import Cards
    from deployc.choose.tune.change import Change
    from deployc.pipeline import Analysis
    from deployc.spec.deploy import Deploy
    from deployc.types.facts import Facts


def command(
    file: options.File = options.DEFAULT_FILE,
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", metavar="NAME", help="A kind of card to look at; repeatable.")
    ] = None,
    count: Annotated[
        list[str] | None, typer.Option("--count", metavar="N,N", help="How many cards to look at, as 1,2,4.")
    ] = None,
    price: Annotated[
        list[str] | None, typer.Option("--price", metavar="GPU=NUMBER", help="Money for a card and hour; repeatable.")
    ] = None,
    free: Annotated[
        list[str] | None, typer.Option("--free", metavar="KEY", help="May change although it is written; repeatable.")
    ] = None,
    likely: Annotated[
        bool, typer.Option("--likely", help="A limit is met where the predicted value meets it, whatever its band.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Put the choice into the file.")] = False,
    offline: options.Offline = False,
    assume: options.Assume = None,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Find the cheapest configuration that meets the SLA. Example: deployc tune --gpu l40s --count 1,2"""
    from deployc import pipeline
    from deployc.cli.cards import cards
    from deployc.facts.assume import parsed

    analysis = pipeline.resolved(file, offline=offline, assume=parsed(assume or ()))
    if analysis.deploy is None or analysis.facts is None or analysis.report.errors:
        return _not_read(analysis, json=json, no_color=no_color)
    names = _free(free or [])
    looked_at = cards(analysis.deploy, analysis.facts, gpu or [], count or [], price or [], offline=offline)
    document = _tuned(analysis, analysis.deploy, analysis.facts, looked_at, names, sure=not likely, write=write)
    if json:
        show.json(document)
    else:
        from deployc.views.tune import tune as view

        color, width = show.color(sys.stdout, no_color), show.width(sys.stdout)
        show.text(view(document, analysis.report, color=color, width=width, file=str(file)))
    return analysis.exit_code


def _tuned(
    analysis: Analysis, deploy: Deploy, facts: Facts, cards: Sequence[Cards], free: Sequence[str], *, sure: bool,
    write: bool,
) -> dict[str, Any]:  # fmt: skip
    """The document; what the search found wrong goes into the report."""
    from deployc.choose import decide
    from deployc.choose.tune import changes, tune
    from deployc.choose.tune.findings import findings
    from deployc.choose.tune.reasons import settings
    from deployc.choose.tune.verdict import said, without_limits
    from deployc.plan.tuned import document

    now, like, _ = decide(without_limits(deploy), facts)
    assert now is not None and like is not None  # noqa: S101  (decide gives both, even where nothing fits)
    found = tune(deploy, facts, like, cards, free=free, sure=sure)
    made = changes(deploy, facts, found.chosen.candidate, free) if found.chosen else []
    analysis.report.extend(findings(deploy, facts, now, found, cards))
    if found.chosen:
        analysis.report.extend(said(found.chosen.candidate))
    written = None
    if write and made and analysis.exit_code == ExitCode.OK:
        _write(analysis.path, made)
        written = str(analysis.path)
    why = settings(deploy, facts, now, found, cards, made, free)
    return document(deploy, found, why, made, analysis.report, written=written)


def _not_read(analysis: Analysis, *, json: bool, no_color: bool) -> int:
    if json:
        from deployc.plan.document import partial_document

        show.json(partial_document(analysis.deploy.name if analysis.deploy else None, analysis.report))
    else:
        show.report(analysis.report, no_color=no_color)
    return analysis.exit_code


def _write(path: Path, made: Sequence[Change]) -> None:
    """Replace the file by one with the changes. Raises Stop where they cannot be put into its text."""
    from deployc.source.edit import NotEdited, edited

    data = path.read_bytes()
    text = data.decode("utf-8-sig")
    try:
        new = edited(text, {change.path: change.value for change in made})
    except NotEdited:
        said = "; ".join(f"{'.'.join(change.path)}: {change.value}" for change in made)
        detail = "An alias or a merge (`<<`) holds these keys, and others would change with them."
        raise Stop(error("DC444", "the choice cannot be put into the file", detail, f"write by hand: {said}")) from None
    show.written(path, ("\ufeff" if data.startswith(b"\xef\xbb\xbf") else "") + new)


def _free(written: Sequence[str]) -> list[str]:
    from deployc.choose.tune import OPEN, spelled

    found = []
    for key in ",".join(written).split(",") if written else ():
        name = spelled(key)
        if name is None:
            raise typer.BadParameter(f"--free {key!r} is none of {', '.join(OPEN)}")
        found.append(name)
    return found
