"""Fits the constants of the speed model on measured runs: simulate, time the same steps again and again, repeat.

Weighted least squares of logarithms with a robust loss (scipy.optimize.least_squares, soft_l1). Every constant is
drawn to what is known of it without these rows (profiles/calibration/speed_priors.json) as far as the rows are silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployc.cost.speed_basis import SpeedBasis, speed_basis
from deployc.measure.calibrate.speed.names import constants_of
from deployc.measure.calibrate.speed.priors import Priors
from deployc.measure.calibrate.speed.replay import FITTED, Replay, engine_of, replay
from deployc.measure.calibrate.speed.sample import Sample
from deployc.types.speed import Constants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NOISE: Mapping[str, float] = {
    "tokens_per_second": 0.012, "tpot_p50": 0.012, "ttft_p50": 0.045, "ttft_p95": 0.045, "e2e_p50": 0.018,
}  # fmt: skip
"""Relative: a little above what the same load shows when it is measured twice (rows/README.md)."""
FEW = 3.0
"""TTFT of one stream has two or three samples a row: so much noisier."""
WORST = 1e3
"""Of a trial whose times are no numbers."""
BESIDE = 2.0
"""A run beside other engines, though idle ones, shares the host with them: its figures are so much noisier."""
ROBUST = 2.0
"""Deviations beyond which a residual counts less than its square."""


def fit(
    samples: Sequence[Sample], priors: Priors, begin: Mapping[str, float] | None = None, rounds: int = 4
) -> dict[str, float]:
    """Constants by flat name. `begin`: where to start, else at the priors."""
    import numpy as np
    from scipy.optimize import least_squares

    known = priors.values() | dict(begin or {})
    names = priors.fitted
    scale = np.array([priors.of[name].spread for name in names])
    centre = np.log([priors.of[name].value for name in names])
    x = np.log([known[name] for name in names])
    measured, weights = _measured(samples), _weights(samples)
    engines = [engine_of(sample, basis_with(sample, constants_of(known))) for sample in samples]
    alone = [sample.alone for sample in samples]
    ties = [(names.index(tie.one), names.index(tie.other), tie.spread) for tie in priors.ties]
    for turn in range(rounds):
        constants = _both(known | _named(names, x))
        runs = [replay(s, one, constants[s.alone]) for s, one in zip(samples, engines, strict=True)]

        def residuals(x: Array, runs: Sequence[Replay] = runs) -> Array:
            trial = _both(known | _named(names, x))
            with np.errstate(all="ignore"):  # far from a solution a trial may overflow: it is only a bad one
                rows = np.log(np.array([run.quantities(trial[a]) for run, a in zip(runs, alone, strict=True)]))
            apart = (x - centre) / scale
            tied = [(x[one] - x[other]) / spread for one, other, spread in ties]
            off = np.where(np.isnan(measured), 0.0, np.nan_to_num((rows - measured) * weights, nan=WORST))
            every: Array = np.concatenate([off.ravel(), apart, np.array(tied)])
            return every

        steps = 7 if turn < rounds - 1 else 10
        found = least_squares(residuals, x, loss="soft_l1", f_scale=ROBUST, max_nfev=steps, x_scale=scale)
        x = np.asarray(found.x)
    return known | _named(names, x)


def _both(named: Mapping[str, float]) -> Mapping[bool, Constants]:
    """Of runs that were alone on their host, and of others."""
    return {alone: constants_of(named, alone=alone) for alone in (True, False)}


def _named(names: Sequence[str], logarithms: Any) -> dict[str, float]:
    import numpy as np

    return dict(zip(names, (float(value) for value in np.exp(logarithms)), strict=True))


def basis_with(sample: Sample, constants: Constants) -> SpeedBasis:
    """The sample's card with other constants: its own peaks."""
    return replace(speed_basis(sample.facts, sample.choices), constants=constants)


def _measured(samples: Sequence[Sample]) -> Array:
    """Logarithms, one row a sample; NaN where a row does not have a quantity."""
    import numpy as np

    rows: Array = np.array([[sample.measured.get(name, np.nan) for name in FITTED] for sample in samples])
    return np.asarray(np.log(rows))


def _weights(samples: Sequence[Sample]) -> Array:
    import numpy as np

    rows = []
    for sample in samples:
        few = FEW if sample.one_stream else 1.0
        beside = 1.0 if sample.alone else BESIDE
        rows.append([1 / (NOISE[name] * beside * (few if name.startswith("ttft") else 1.0)) for name in FITTED])
    return np.array(rows)
