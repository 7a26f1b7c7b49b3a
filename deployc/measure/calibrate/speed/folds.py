"""Scores a fit on rows that it did not see: each configuration left out in turn, then each kind of work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from deployc.measure.calibrate.speed.fit import basis_with, fit
from deployc.measure.calibrate.speed.names import constants_of
from deployc.measure.calibrate.speed.priors import Priors
from deployc.measure.calibrate.speed.row import QUANTITIES
from deployc.measure.calibrate.speed.sample import Sample, serve

ROUNDS = 2
"""Of a fold, which begins at the fit of all rows."""


@dataclass(frozen=True, slots=True)
class Residual:
    """One run beside a prediction that did not see it: logarithms of predicted over measured."""

    sample: Sample
    fold: str
    of: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to fit on and rows to predict."""

    name: str
    train: Sequence[Sample]
    test: Sequence[Sample]
    priors: Priors
    begin: Mapping[str, float]

    def residuals(self) -> list[Residual]:
        """Fits on the one, predicts the other."""
        fitted = fit(self.train, self.priors, self.begin, ROUNDS)
        return residuals(self.test, fitted, self.name)


def residuals(samples: Iterable[Sample], fitted: Mapping[str, float], fold: str = "") -> list[Residual]:
    """Predictions under one fit beside what was measured."""
    found = []
    for sample in samples:
        served = serve(sample, basis_with(sample, constants_of(fitted, alone=sample.alone)))
        off = {n: math.log(getattr(served, n) / sample.measured[n]) for n in QUANTITIES if sample.measured.get(n)}
        found.append(Residual(sample, fold, off))
    return found


def configurations(samples: Sequence[Sample], priors: Priors, begin: Mapping[str, float]) -> list[Fold]:
    """One fold a configuration, of those whose kinds of work all stand in the rest too."""
    return [
        fold
        for fold in _folds(samples, lambda sample: {sample.config}, priors, begin)
        if all(sample.kinds <= _kinds(fold.train) for sample in fold.test)
    ]


def kinds(samples: Sequence[Sample], priors: Priors, begin: Mapping[str, float]) -> list[Fold]:
    """One fold a kind of work that not all rows have: what is carried over to a kind that was never measured.

    Such a fold begins at the priors, which have their sources outside the rows.
    """
    plain = "bf16"
    return [
        Fold(f.name, f.train, f.test, f.priors, priors.values())
        for f in _folds(samples, lambda sample: sample.kinds - {plain}, priors, begin)
    ]


def run(folds: Sequence[Fold], workers: int) -> list[Residual]:
    """All of them, in processes of their own."""
    with ProcessPoolExecutor(max_workers=workers) as pool:
        return [residual for found in pool.map(Fold.residuals, folds) for residual in found]


def _folds(
    samples: Sequence[Sample], keys: Callable[[Sample], Iterable[str]], priors: Priors, begin: Mapping[str, float]
) -> list[Fold]:
    names = sorted({key for sample in samples for key in keys(sample)})
    made = []
    for name in names:
        test = [sample for sample in samples if name in keys(sample)]
        train = [sample for sample in samples if name not in keys(sample)]
        made.append(Fold(name, train, test, priors, begin))
    return made


def _kinds(samples: Iterable[Sample]) -> frozenset[str]:
    return frozenset().union(*(sample.kinds for sample in samples))
