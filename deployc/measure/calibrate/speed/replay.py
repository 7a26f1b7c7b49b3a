"""A sample's run as arrays of steps: timed again under other constants without simulating it again.

Which requests share a step changes little with the constants, and neither does what a stage takes beside its steps'
own time, where steps of other kinds meet: a fit simulates a few times and times often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from deployc.cost.engine import Engine, engine
from deployc.cost.speed_basis import SpeedBasis
from deployc.cost.step import Columns, Shape, Step, StepTime, columns, step_time
from deployc.measure.calibrate.speed.sample import Sample
from deployc.types.speed import Constants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FITTED = ("tokens_per_second", "tpot_p50", "ttft_p50", "ttft_p95", "e2e_p50")
"""Quantities that a fit looks at."""


@dataclass(frozen=True, slots=True)
class Seen:
    """When something of each request was seen: that share into a stage, and so many seconds more.

    An arrival at a time of its own keeps its place among the steps: with longer ones there are fewer of them between
    two arrivals, and no request waits longer than theirs.
    """

    stages: NDArray[np.intp]
    share: Array
    later: Array

    def at(self, ends: Array) -> Array:
        """Seconds from the start; `ends` of stages, the first of them the start."""
        after: Array = ends[self.stages + 1] - ends[self.stages]
        return ends[self.stages] + self.share * after + self.later


@dataclass(frozen=True, slots=True)
class Replay:
    """One run. Stages are runs of equal steps and waits; requests point at the stages around them."""

    shape: Shape
    steps: Columns  # arrays, one entry a stage
    counts: NDArray[np.intp]  # steps of a stage; 0 for a wait
    cold: NDArray[np.bool_]  # the host begins such a stage with nothing in flight
    beside: Array  # seconds of a stage that are not its steps' own; all of them where it is a wait
    sent: Seen
    first: Seen
    done: Seen
    outputs: Array
    tokens_per_second: float | None  # of an open load, whose arrivals decide it

    def quantities(self, constants: Constants) -> Array:
        """What `FITTED` names, s and 1/s."""
        import numpy as np

        ends = self._ends(constants)
        sent, first, done = (seen.at(ends) for seen in (self.sent, self.first, self.done))
        front = constants.front
        ttft, tpot = first - sent + front, (done - first) / np.maximum(self.outputs - 1, 1)
        tokens = self.tokens_per_second or self.outputs.sum() / (done.max() + constants.front)
        return np.array([tokens, _at(tpot, 0.5), _at(ttft, 0.5), _at(ttft, 0.95), _at(done - sent + front, 0.5)])

    def _ends(self, constants: Constants) -> Array:
        """When each stage ends; the first entry is the start."""
        import numpy as np

        own = _own(step_time(self.shape, self.steps, constants), self.counts, self.cold)
        ends = np.concatenate([[0.0], np.cumsum(own + self.beside)])
        return np.append(ends, ends[-1])


def _own(time: StepTime, counts: NDArray[np.intp], cold: NDArray[np.bool_]) -> Array:
    """Seconds of stages by their steps alone: the larger of GPU and host, after a wait with what goes before both."""
    import numpy as np

    made: Array = np.maximum(time.gpu, time.host) * counts
    return made + np.where(cold, np.minimum(time.lead, np.maximum(0.0, time.gpu + time.lead - time.host)), 0.0)


def engine_of(sample: Sample, basis: SpeedBasis) -> Engine:
    """The sample's engine under these constants."""
    return engine(sample.facts, sample.choices, basis, sample.available.value, sample.longest, served=sample.served)


def replay(sample: Sample, one: Engine, constants: Constants) -> Replay:
    """Simulates once, and keeps the steps."""
    import numpy as np

    again = Engine(Step(one.step.shape, constants), one.limits, constants, one.served)
    trace = again.trace(sample.load, record=True)
    record = trace.record
    if record is None:
        raise ValueError("a recorded run has a record")
    works = [work for _, work in record.stages]
    idle = next(work for work in works if work is not None)
    shape = one.step.shape
    rows = [columns(shape, work or idle) for work in works]
    steps = Columns(*cast(Any, map(np.array, zip(*rows, strict=True))))
    counts = np.array([count for count, _ in record.stages])
    cold = (counts == 1) & np.concatenate([[False], counts[:-1] == 0])
    return Replay(
        shape=shape,
        steps=steps,
        counts=counts,
        cold=cold,
        beside=np.diff(record.ends, prepend=0.0) - _own(step_time(shape, steps, constants), counts, cold),
        sent=_sent(trace.sent, record.ends) if sample.load.arrivals else _seen(record.sent, trace.sent, record.ends),
        first=_seen(record.first, trace.first, record.ends),
        done=_seen(record.done, trace.done, record.ends),
        outputs=np.array(sample.load.outputs, dtype=float),
        tokens_per_second=again.serve(sample.load).tokens_per_second if sample.load.arrivals else None,
    )


def _seen(stages: Sequence[int], times: Sequence[float], ends: Sequence[float]) -> Seen:
    import numpy as np

    index = np.maximum(np.array(stages), 0)  # the first of a closed load are sent at the start
    return Seen(index, np.zeros(len(index)), np.array(times) - np.concatenate([[0.0], ends])[index])


def _sent(times: Sequence[float], ends: Sequence[float]) -> Seen:
    """Arrivals at times of their own: in which stage, and how far into it."""
    import numpy as np

    begins = np.concatenate([[0.0], ends])
    index = np.clip(np.searchsorted(begins, times, side="right") - 1, 0, len(ends) - 1)
    share = (np.array(times) - begins[index]) / np.maximum(begins[index + 1] - begins[index], 1e-12)
    return Seen(index, share, np.zeros(len(index)))


def _at(values: Array, share: float) -> float:
    """cost.simulate.outcome.percentile, of an array."""
    import numpy as np

    return float(np.sort(values)[min(len(values) - 1, int(share * len(values)))])
