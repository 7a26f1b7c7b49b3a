"""The scheduler of one engine under a load, simulated step by step.

In: `Load`, `Limits`, `Delays` and the seconds of a step by its work. Out: `Trace`, and the `Outcome` that users see.
"""

from deployc.cost.simulate.limits import AHEAD, Delays, Limits
from deployc.cost.simulate.load import Load, closed, lengths, poisson
from deployc.cost.simulate.outcome import Outcome, outcome, unbounded
from deployc.cost.simulate.room import ENDLESS, Room, room
from deployc.cost.simulate.scheduler import simulate
from deployc.cost.simulate.trace import Record, Trace

__all__ = [
    "AHEAD", "ENDLESS", "Delays", "Limits", "Load", "Outcome", "Record", "Room", "Trace", "closed", "lengths",
    "outcome", "poisson", "room", "simulate", "unbounded",
]  # fmt: skip
