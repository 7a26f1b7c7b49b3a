"""Measured rows against the cost model.

In: files of JSON lines, one engine start each. Out: a score: errors by group and quantity, and every row or its reason.
"""

from deployc.measure.calibrate.document import document
from deployc.measure.calibrate.lines import read
from deployc.measure.calibrate.score import score

__all__ = ["document", "read", "score"]
