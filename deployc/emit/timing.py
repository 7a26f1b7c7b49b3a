"""How long a target waits: for the engine to become ready, and for requests in flight at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.spec.deploy import Deploy
from deployc.types.prediction import Prediction

SHORTEST_START = 120
SHORTEST_DRAIN, LONGEST_DRAIN = 30, 300
STOP_MARGIN = 10


@dataclass(frozen=True, slots=True)
class Timing:
    """Whole seconds: `start` until /health must answer, `drain` for requests in flight, `stop` until the kill."""

    start: int
    drain: int

    @property
    def stop(self) -> int:
        """The drain, and what the engine needs to end after it."""
        return self.drain + STOP_MARGIN


def timing(deploy: Deploy, prediction: Prediction) -> Timing:
    """As written; else the high end of the predicted start, and of the p95 of a whole request, in steps of 10 s."""
    start, drain = deploy.rollout.health_timeout, deploy.rollout.drain_timeout
    return Timing(
        start=max(SHORTEST_START, _tens(prediction.startup_seconds.high)) if start == "auto" else math.ceil(start),
        drain=(
            min(LONGEST_DRAIN, max(SHORTEST_DRAIN, _tens(prediction.speed.e2e_p95.high)))
            if drain == "auto"
            else math.ceil(drain)
        ),
    )


def _tens(seconds: float) -> int:
    return LONGEST_START if seconds > LONGEST_START else math.ceil(seconds / 10) * 10


LONGEST_START = 7200
"""A prediction without bound (an overload's queue) must still give a number of seconds."""
