"""Scores as one JSON object: errors by group and quantity, the rows worst first, and what was not scored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

from deployc.diagnostics import Report
from deployc.measure.calibrate.score import NotScored, Score, Scored
from deployc.measure.calibrate.speed.score import Against, SpeedScore
from deployc.plan.document import diagnostics

FORMAT_VERSION = "1.1"
ALL = "all"
"""The group of all runs, beside those by kind."""


def document(score: Score, speed: SpeedScore, report: Report) -> dict[str, Any]:
    """What `deployc calibrate score --json` prints: of starts at the top, of runs under `speed`.

    `groups` {group: {quantity: {n, mape, median_ape, worst, bias, mae, inside_band, half_width, basis}}}: relative
    errors as shares of what was measured, `worst` the largest, `bias` their signed mean; `mae` in the quantity's own
    unit (GiB, tokens, blocks, requests, s, 1/s), for sizes as `mae_gib` too; `inside_band` the share within the
    predicted band, `half_width` the median of half that band as a share of the prediction. None where no figure above
    zero was measured, or predicted.
    """
    every = Score(speed.scored, speed.not_scored)
    return {
        "format_version": FORMAT_VERSION,
        **_part(score, group_errors(score.scored)),
        "speed": {
            **_part(every, {**group_errors(speed.scored), **group_errors(speed.scored, ALL)}),
            "against": _against(speed.against) if speed.against else None,
        },
        "diagnostics": diagnostics(report),
    }


def _part(of: Score, groups: dict[str, Any]) -> dict[str, Any]:
    return {
        "groups": groups,
        "rows": [_row(one) for one in worst_first(of.scored)],
        "not_scored": not_scored(of.not_scored),
    }


def not_scored(left: Iterable[NotScored]) -> list[dict[str, Any]]:
    """Rows without a prediction, each with its reason."""
    return [
        {"id": one.id, "reason": one.reason, "quantities": list(one.quantities), "at": f"{one.file}:{one.line}"}
        for one in left
    ]


def group_errors(scored: Iterable[Scored], name: str | None = None) -> dict[str, Any]:
    """Errors by group and quantity; by quantity alone under one `name`."""
    groups: dict[str, dict[str, list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for one in scored:
        groups[name or one.group][one.quantity].append(one)
    return {
        group: {quantity: summary(of) for quantity, of in quantities.items()}
        for group, quantities in sorted(groups.items())
    }


def _against(other: Against) -> dict[str, Any]:
    """Both estimates of the same figures of the same runs, in all and by group."""
    both = {"ours": other.ours, "theirs": other.theirs}
    return {
        "file": other.file,
        "estimator": other.name,
        "runs": other.runs,
        **{side: {**group_errors(of), **group_errors(of, ALL)} for side, of in both.items()},
    }


def summary(scored: Iterable[Scored]) -> dict[str, Any]:
    """Errors of one quantity in one group."""
    of = list(scored)
    errors = [one.error for one in of if one.error is not None]
    sizes = [abs(error) for error in errors]
    bands = [one.predicted for one in of if one.predicted.value > 0]
    widths = [(band.high - band.low) / 2 / band.value for band in bands]
    off = fmean(abs(one.predicted.value - one.measured) for one in of)
    return {
        "n": len(of),
        "mape": fmean(sizes) if sizes else None,
        "median_ape": median(sizes) if sizes else None,
        "worst": max(sizes) if sizes else None,
        "bias": fmean(errors) if errors else None,
        "mae": off,
        **({"mae_gib": off} if of[0].quantity.endswith("_gib") else {}),
        "inside_band": fmean(one.inside_band for one in of),
        "half_width": median(widths) if widths else None,
        "basis": sorted({one.predicted.basis for one in of}),
    }


def worst_first(scored: Iterable[Scored]) -> list[Scored]:
    """By the size of the relative error; those that have none by how far off they are, at the end."""

    def key(one: Scored) -> tuple[bool, float]:
        error = one.error
        return error is None, -abs(one.predicted.value - one.measured if error is None else error)

    return sorted(scored, key=key)


def _row(one: Scored) -> dict[str, Any]:
    figure = one.predicted
    return {
        "id": one.id,
        "file": one.file,
        "model": one.model,
        "group": one.group,
        "quantity": one.quantity,
        "measured": one.measured,
        "predicted": figure.value,
        "low": figure.low,
        "high": figure.high,
        "basis": figure.basis,
        "error": one.error,
        "inside_band": one.inside_band,
        "notes": list(one.notes),
        **({"mean_of": list(one.mean_of)} if one.mean_of else {}),
    }
