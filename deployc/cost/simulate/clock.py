"""When each step is formed, begins and ends: the host prepares a step while the GPU is at the one before.

vllm/v1/engine/core.py, step_with_batch_queue (0.25.1): the engine core forms a step once the one before the last is
done and its own hands are free, prepares the batch, launches the kernels. The GPU begins with the first of them, if it
is done with the step before, and is not done before the last is launched.
"""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.step.time import StepTime

PAUSE = 0.001
"""Seconds that the engine core sleeps where requests are on its books and none could be scheduled (engine/core.py,
_process_engine_step). 0.16.0 to 0.19.0 sleep for requests that wait, not for the last that has just ended."""


@dataclass(slots=True)
class Clock:
    """The last step's end, and when the next one is formed. `ahead`: steps in flight."""

    ahead: int
    now: float = 0.0  # end of the last step
    before: float = 0.0  # end of the one before
    host: float = 0.0  # since when the host is free
    formed: float = 0.0  # when the next step is formed

    def wait(self, until: float) -> None:
        """Nothing is in flight until then."""
        self.now = self.before = self.host = self.formed = until

    def step(self, time: StepTime) -> None:
        """One step passes."""
        free = self.formed + time.host
        end = max(max(self.now, self.formed + time.lead) + time.gpu, free)
        self.before, self.now, self.host = self.now, end, free
        self.formed = max(free, self.before if self.ahead > 1 else end)

    def answered(self, time: StepTime) -> float:
        """When what the last step gave is seen, if one of `time` follows: with two in flight the core forms and
        launches that one first."""
        return max(self.now, self.formed + time.host) if self.ahead > 1 else self.now

    def steps(self, count: int, time: StepTime) -> None:
        """Equal ones: after the first few each takes as long as the next."""
        first = min(count, 3)
        for _ in range(first):
            self.step(time)
        if rest := count - first:
            later = rest * (time.steady if self.ahead > 1 else time.alone)
            self.now, self.before, self.host, self.formed = (
                self.now + later, self.before + later, self.host + later, self.formed + later,
            )  # fmt: skip
