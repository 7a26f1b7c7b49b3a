"""A score as one JSON object: errors by group and quantity, the rows worst first, and what was not scored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

from deployc.diagnostics import Report
from deployc.measure.calibrate.score import Score, Scored
from deployc.plan.document import diagnostics

FORMAT_VERSION = "1.0"


def document(score: Score, report: Report) -> dict[str, Any]:
    """What `deployc calibrate score --json` prints.

    `groups` {group: {quantity: {n, mape, median_ape, worst, bias, mae, inside_band}}}: relative errors as shares of
    what was measured, `worst` the largest, `bias` their signed mean; `mae` in the quantity's own unit (GiB, tokens,
    blocks, requests), for sizes as `mae_gib` too; `inside_band` the share within the predicted band. None where no
    figure above zero was measured.
    """
    groups: dict[str, dict[str, list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for one in score.scored:
        groups[one.group][one.quantity].append(one)
    return {
        "format_version": FORMAT_VERSION,
        "groups": {
            group: {quantity: summary(of) for quantity, of in quantities.items()}
            for group, quantities in sorted(groups.items())
        },
        "rows": [_row(one) for one in worst_first(score.scored)],
        "not_scored": [
            {"id": one.id, "reason": one.reason, "quantities": list(one.quantities), "at": f"{one.file}:{one.line}"}
            for one in score.not_scored
        ],
        "diagnostics": diagnostics(report),
    }


def summary(scored: Iterable[Scored]) -> dict[str, float | int | None]:
    """Errors of one quantity in one group."""
    of = list(scored)
    errors = [one.error for one in of if one.error is not None]
    sizes = [abs(error) for error in errors]
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
    }
