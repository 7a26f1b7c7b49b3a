"""A fit as one JSON object: constants beside what was known before, and errors in and out of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deployc.diagnostics import Report
from deployc.measure.calibrate.document import group_errors, not_scored
from deployc.measure.calibrate.score import Scored
from deployc.measure.calibrate.speed.fitting import Fitting
from deployc.plan.document import diagnostics

FORMAT_VERSION = "1.0"
ALIKE = "kinds of several configurations"


def fit_document(of: Fitting | None, report: Report) -> dict[str, Any]:
    """What `deployc calibrate fit --json` prints.

    `scores` {in_sample, left_out_configuration, left_out_kind: {group: {quantity: errors}}}, errors as in
    `calibrate score`; `profile` is an entry of profiles/calibration/speed.json.
    """
    if of is None:
        return {"format_version": FORMAT_VERSION, "diagnostics": diagnostics(report)}
    return {
        "format_version": FORMAT_VERSION,
        "gpu": of.card,
        "engine_version": of.version,
        "runs": of.runs,
        "constants": {
            name: {"value": value, "prior": of.priors.of[name].value, "spread": of.priors.of[name].spread,
                   "source": of.priors.of[name].source}
            for name, value in of.fitted.items()
        },
        "files": _files(of.in_sample),
        "scores": {
            "in_sample": _scores(of.in_sample),
            "left_out_configuration": _scores(of.by_configuration),
            "left_out_kind": _scores(of.by_kind),
        },
        "profile": of.entry,
        "not_fitted": not_scored(of.left),
        "diagnostics": diagnostics(report),
    }  # fmt: skip


def _files(scored: Sequence[Scored]) -> list[str]:
    """Names of groups that are files, or parts of them."""
    names = sorted({Path(one.file).name for one in scored})
    return [each for name in names for each in (name, f"{name}, {ALIKE}")] if len(names) > 1 else []


def _scores(scored: Sequence[Scored]) -> dict[str, Any]:
    """By kind of configuration; by file where there are several, and of each what several of its configurations are
    alike in; and in all."""
    files = sorted({one.file for one in scored})
    made = group_errors(scored)
    for file in files if len(files) > 1 else ():
        of = [one for one in scored if one.file == file]
        made |= group_errors(of, Path(file).name) | group_errors(_alike(of), f"{Path(file).name}, {ALIKE}")
    return made | group_errors(scored, "all")


def _alike(scored: Sequence[Scored]) -> list[Scored]:
    """Of kinds that two configurations or more have."""
    configurations: dict[str, set[str]] = {}
    for one in scored:
        configurations.setdefault(one.group, set()).add(one.id.partition("/")[0])
    return [one for one in scored if len(configurations[one.group]) > 1]
