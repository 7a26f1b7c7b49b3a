"""How long a target waits: for the engine to become ready, and for requests in flight at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.spec.deploy import Deploy
from deployc.types.prediction import Prediction

SHORTEST_START = 300
SHORTEST_DRAIN, LONGEST_DRAIN = 30, 300
STOP_MARGIN = 10
SLOWEST_DOWNLOAD = 10e6
"""Bytes/s of a hub, at least: a start that downloads the weights first takes that much longer."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Whole seconds: `start` until /health must answer, `drain` for requests in flight, `stop` until the kill."""

    start: int
    drain: int

    @property
    def stop(self) -> int:
        """The drain, and what the engine needs to end after it."""
        return self.drain + STOP_MARGIN


def timing(deploy: Deploy, prediction: Prediction, downloads: int = 0) -> Timing:
    """As written; else from the predicted start and the p95 of a whole request, at their high end, in steps of 10 s.

    `downloads` are bytes that the engine itself fetches when it starts. A start may take twice what is predicted:
    too long a wait shows a broken start later, too short a one kills a good one for ever.
    """
    start, drain = deploy.rollout.health_timeout, deploy.rollout.drain_timeout
    predicted = prediction.startup_seconds
    longest = max(predicted.high, 2 * predicted.value) + downloads / SLOWEST_DOWNLOAD
    return Timing(
        start=max(SHORTEST_START, _tens(longest)) if start == "auto" else math.ceil(start),
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
