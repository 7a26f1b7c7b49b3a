"""Measured rows against the cost model.

In: files of JSON lines, one engine start or one run each. Out: a score: errors by group and quantity, and every row or
its reason.
"""

from deployc.measure.calibrate.document import document
from deployc.measure.calibrate.lines import read
from deployc.measure.calibrate.score import score
from deployc.measure.calibrate.speed import estimates, fitting, score_runs
from deployc.measure.calibrate.speed import write as write_profile
from deployc.measure.calibrate.speed.fit_document import fit_document

__all__ = ["document", "estimates", "fit_document", "fitting", "read", "score", "score_runs", "write_profile"]
