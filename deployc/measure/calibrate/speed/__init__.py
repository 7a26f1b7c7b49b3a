"""Measured runs against the speed model.

In: rows of a run each, and another estimator's figures of the same runs. Out: samples, and their score.
"""

from deployc.measure.calibrate.speed.estimates import estimates
from deployc.measure.calibrate.speed.score import SpeedScore, score_runs

__all__ = ["SpeedScore", "estimates", "score_runs"]
