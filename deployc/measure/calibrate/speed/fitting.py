"""The whole of a fit: constants, what they miss on the rows they were made from, and on rows that they never saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployc.diagnostics import Report, Stop, error
from deployc.measure.calibrate.score import NotScored, Scored
from deployc.measure.calibrate.speed import folds
from deployc.measure.calibrate.speed.bands import banded
from deployc.measure.calibrate.speed.fit import fit
from deployc.measure.calibrate.speed.folds import Residual
from deployc.measure.calibrate.speed.priors import Priors, priors
from deployc.measure.calibrate.speed.profile import profile
from deployc.measure.calibrate.speed.row import SpeedRow
from deployc.measure.calibrate.speed.sample import Sample, samples
from deployc.measure.calibrate.speed.score import judged

FEWEST = 6
"""Runs without which a fit says more of its priors than of them."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """One card and one version. Scores are in bands that the other folds gave; `in_sample` in those of all."""

    card: str
    version: str
    runs: int
    priors: Priors
    fitted: Mapping[str, float]
    in_sample: tuple[Scored, ...]
    by_configuration: tuple[Scored, ...]
    by_kind: tuple[Scored, ...]
    entry: Mapping[str, Any]  # of profiles/calibration/speed.json
    left: tuple[NotScored, ...]


def fitting(rows: Iterable[SpeedRow], workers: int) -> Fitting:
    """Fits on all rows, then without each configuration, then without each kind of work. Minutes.

    Raises Stop: rows of several cards or versions, too few of them, or without scipy.
    """
    made, left = samples(rows)
    _check(made)
    known = priors()
    fitted = fit(made, known)
    inside = folds.residuals(made, fitted)
    configurations = folds.run(folds.configurations(made, known, fitted), workers)
    kinds = folds.run(folds.kinds(made, known, fitted), workers)
    card, version = made[0].facts.smallest.name, made[0].version
    return Fitting(
        card=card,
        version=version,
        runs=len(made),
        priors=known,
        fitted=fitted,
        in_sample=tuple(judged(banded(_one_fold_each(inside), "measured"))),
        by_configuration=tuple(judged(banded(configurations, "measured"))),
        by_kind=tuple(judged(banded(kinds, "transferred"))),
        entry=profile(made, fitted, configurations, kinds, f"vLLM {version} on {card}"),
        left=tuple(left),
    )


def _one_fold_each(residuals: Sequence[Residual]) -> list[Residual]:
    """In the sample every configuration is a fold of its own: its band comes from the others."""
    return [Residual(residual.sample, residual.sample.config, residual.of) for residual in residuals]


def _check(made: Sequence[Sample]) -> None:
    """One set of constants is of one card and one version."""
    report = Report()
    groups = sorted({(sample.facts.smallest.name, sample.version) for sample in made})
    if len(made) < FEWEST:
        report.add(
            error(
                "DC674",
                "too few runs to fit",
                f"{len(made)} of the rows are runs that can be predicted; {FEWEST} are the fewest.",
                "measure more loads: one stream, many streams, short and long prompts",
            )
        )
    elif len(groups) > 1:
        found = ", ".join(f"vLLM {version} on {card}" for card, version in groups)
        report.add(
            error(
                "DC675",
                "rows of several cards or versions",
                f"One fit is of one card and one version; these rows are of {found}.",
                "fit each of them by itself",
            )
        )
    try:
        import scipy  # noqa: F401
    except ImportError:
        report.add(error("DC676", "a fit needs scipy", "It is not installed here.", "pip install 'deployc[calibrate]'"))
    if report.errors:
        raise Stop(report)
