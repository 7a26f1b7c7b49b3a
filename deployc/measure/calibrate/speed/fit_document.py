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
        "files": sorted({Path(one.file).name for one in of.in_sample}),
        "scores": {
            "in_sample": _scores(of.in_sample),
            "left_out_configuration": _scores(of.by_configuration),
            "left_out_kind": _scores(of.by_kind),
        },
        "profile": of.entry,
        "not_fitted": not_scored(of.left),
        "diagnostics": diagnostics(report),
    }  # fmt: skip


def _scores(scored: Sequence[Scored]) -> dict[str, Any]:
    """By kind of configuration, by file where there are several, and in all."""
    files = sorted({one.file for one in scored})
    made = group_errors(scored)
    for file in files if len(files) > 1 else ():
        made |= group_errors([one for one in scored if one.file == file], Path(file).name)
    return made | group_errors(scored, "all")
