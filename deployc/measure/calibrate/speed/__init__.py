"""Measured runs against the speed model, and the fit of its constants on them.

In: rows of a run each, and another estimator's figures of the same runs. Out: samples, their score, and a fit.
"""

from deployc.measure.calibrate.speed.estimates import estimates
from deployc.measure.calibrate.speed.fitting import Fitting, fitting
from deployc.measure.calibrate.speed.profile import write
from deployc.measure.calibrate.speed.score import SpeedScore, score_runs

__all__ = ["Fitting", "SpeedScore", "estimates", "fitting", "score_runs", "write"]
