"""The time of one engine step: the larger of what the GPU and the host take for its batch.

In: `Facts`, `Choices` and the constants of a speed profile. Out: `Step`, seconds by `Work`.
"""

from deployc.cost.step.columns import Columns, columns
from deployc.cost.step.kernel import kernel
from deployc.cost.step.shape import Peaks, Shape, shape
from deployc.cost.step.step import Step, step_time
from deployc.cost.step.time import StepTime
from deployc.cost.step.work import Work

__all__ = ["Columns", "Peaks", "Shape", "Step", "StepTime", "Work", "columns", "kernel", "shape", "step_time"]
