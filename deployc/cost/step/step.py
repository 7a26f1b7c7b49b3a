"""The time of one engine step as a function of its batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployc.cost.step.columns import Columns, columns
from deployc.cost.step.gpu import gpu_seconds
from deployc.cost.step.host import batch_seconds, launch_seconds
from deployc.cost.step.shape import Shape
from deployc.cost.step.time import StepTime
from deployc.cost.step.work import Work
from deployc.types.speed import Constants

BUCKET = 256
"""Tokens of context, over all sequences, within which steps count as equal: well under a thousandth of their time."""


def step_time(shape: Shape, step: Columns, constants: Constants) -> StepTime:
    """What the GPU and the host take, each by itself. Fields are arrays where the columns are."""
    lead = batch_seconds(shape, step, constants)
    return StepTime(gpu_seconds(shape, step, constants), lead + launch_seconds(shape, step, constants), lead)


@dataclass(frozen=True, slots=True)
class Step:
    """Steps of one engine, each kind computed once."""

    shape: Shape
    constants: Constants
    known: dict[tuple[int, int, int, int, int, int], StepTime] = field(default_factory=dict)

    def time(self, work: Work) -> StepTime:
        """Of a step with this work."""
        key = (
            work.decodes, int(work.context) // BUCKET, work.tokens, int(work.area) // (BUCKET * BUCKET),
            work.finished, work.begun,
        )  # fmt: skip
        found = self.known.get(key)
        if found is None:
            time = step_time(self.shape, columns(self.shape, work), self.constants)
            found = self.known[key] = StepTime(*map(float, time))
        return found

    def seconds(self, work: Work) -> float:
        """From the end of the step before to the end of this one, in a row of such steps."""
        return self.time(work).steady
