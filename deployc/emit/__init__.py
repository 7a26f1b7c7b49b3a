"""COMPILE: the chosen configuration as files and launches, under one digest.

In: Deploy, Facts, Choices, Prediction. Out: `Bundle`, every flag of which knows why it is there, and a Report.
"""

from deployc.emit.compile import compile_bundle

__all__ = ["compile_bundle"]
