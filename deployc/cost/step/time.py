"""How long a step takes: the GPU and the host each have their part, side by side."""

from __future__ import annotations

from typing import NamedTuple


class StepTime(NamedTuple):
    """Seconds of one step."""

    gpu: float
    host: float  # of the engine core's own thread: scheduling, preparing, launching
    lead: float  # of these, before the first kernel is launched

    @property
    def steady(self) -> float:
        """From one end to the next in a row of equal steps, two of them in flight."""
        return max(self.gpu, self.host)

    @property
    def alone(self) -> float:
        """From the forming of one to its end, where nothing else is in flight; never less than `steady`."""
        return max(self.lead + self.gpu, self.host)
