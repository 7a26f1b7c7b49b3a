"""The time of one engine step as a function of its batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployc.cost.step.columns import Columns, columns
from deployc.cost.step.gpu import gpu_seconds, smooth_max
from deployc.cost.step.host import host_seconds
from deployc.cost.step.shape import Shape
from deployc.cost.step.work import Work
from deployc.types.speed import Constants

BUCKET = 256
"""Tokens of context, over all sequences, within which steps count as equal: well under a thousandth of their time."""


def step_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """The GPU waits for the host or the host for the GPU: a smooth maximum of both, not a sum."""
    gpu, host = gpu_seconds(shape, step, constants), host_seconds(shape, step, constants)
    return smooth_max(gpu, host, constants.sharpness)


@dataclass(frozen=True, slots=True)
class Step:
    """Steps of one engine, each kind computed once."""

    shape: Shape
    constants: Constants
    known: dict[tuple[int, int, int, int, int, int], float] = field(default_factory=dict)

    def seconds(self, work: Work) -> float:
        """From the end of the step before to the end of this one, in an engine that is busy."""
        key = (
            work.decodes, int(work.context) // BUCKET, work.tokens, int(work.area) // (BUCKET * BUCKET),
            work.finished, work.begun,
        )  # fmt: skip
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = float(step_seconds(self.shape, columns(self.shape, work), self.constants))
        return found

    def decode(self, sequences: int, context: float) -> float:
        """Seconds of one token for each of `sequences`, each with `context` tokens before it."""
        return self.seconds(Work(sequences, sequences * context))

    def prompt(self, tokens: int, before: float = 0.0) -> float:
        """Seconds of a step that computes one prompt alone."""
        return self.seconds(Work(0, 0.0, 1, tokens, tokens * (before + tokens / 2), 1, 1))
