"""A sample's run as arrays of steps: timed again under other constants without simulating it again.

Which requests share a step changes little with the constants, so a fit simulates a few times and times often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from deployc.cost.engine import Engine, engine
from deployc.cost.speed_basis import SpeedBasis
from deployc.cost.step import Columns, Shape, Step, columns, step_seconds
from deployc.measure.calibrate.speed.sample import Sample
from deployc.types.speed import Constants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FITTED = ("tokens_per_second", "tpot_p50", "ttft_p50", "ttft_p95", "e2e_p50")
"""Quantities that a fit looks at."""


@dataclass(frozen=True, slots=True)
class Replay:
    """One run. Stages are runs of equal steps and waits; requests point at the stages around them."""

    shape: Shape
    steps: Columns  # arrays, one entry a stage
    counts: Array  # steps of a stage; 0 for a wait
    waits: Array  # seconds of a stage that is a wait, else 0
    sent: NDArray[np.intp]  # stages before a request was sent; -1 = it came at a time of its own
    first: NDArray[np.intp]
    done: NDArray[np.intp]
    arrivals: Array
    inputs: Array
    outputs: Array

    def quantities(self, constants: Constants) -> Array:
        """What `FITTED` names, s and 1/s."""
        import numpy as np

        each = np.asarray(step_seconds(self.shape, self.steps, constants)) * self.counts + self.waits
        at = np.concatenate([[0.0], np.cumsum(each)])
        sent = np.where(self.sent >= 0, at[self.sent], self.arrivals)
        first, done = at[self.first], at[self.done]
        front = constants.front + constants.front_token * self.inputs
        ttft, tpot = first - sent + front, (done - first) / np.maximum(self.outputs - 1, 1)
        tokens = self.outputs.sum() / (done.max() + constants.front)
        return np.array([tokens, _at(tpot, 0.5), _at(ttft, 0.5), _at(ttft, 0.95), _at(done - sent + front, 0.5)])


def engine_of(sample: Sample, basis: SpeedBasis) -> Engine:
    """The sample's engine under these constants."""
    return engine(sample.facts, sample.choices, basis, sample.available.value, sample.longest)


def replay(sample: Sample, one: Engine, constants: Constants) -> Replay:
    """Simulates once, and keeps the steps."""
    import numpy as np

    again = Engine(Step(one.step.shape, constants), one.limits, constants)
    record = again.trace(sample.load, record=True).record
    if record is None:
        raise ValueError("a recorded run has a record")
    waits = iter(record.waits)
    works = [work for _, work in record.stages]
    idle = next(work for work in works if work is not None)
    shape = one.step.shape
    rows = [columns(shape, work or idle) for work in works]
    return Replay(
        shape=shape,
        steps=cast(Columns, Columns(*cast(Any, map(np.array, zip(*rows, strict=True))))),
        counts=np.array([count for count, _ in record.stages], dtype=float),
        waits=np.array([0.0 if work else next(waits) for work in works]),
        sent=np.array(record.sent),
        first=np.array(record.first),
        done=np.array(record.done),
        arrivals=np.array(sample.load.arrivals or [0.0] * sample.load.requests),
        inputs=np.array(sample.load.inputs, dtype=float),
        outputs=np.array(sample.load.outputs, dtype=float),
    )


def _at(values: Array, share: float) -> float:
    """cost.simulate.outcome.percentile, of an array."""
    import numpy as np

    return float(np.sort(values)[min(len(values) - 1, int(share * len(values)))])
