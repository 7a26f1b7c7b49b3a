"""How long a simulated run takes, over the same run with each step followed by itself.

1,000 requests of 1,500 and 256 tokens, 32 in flight or as many a second as an engine can do, alike and with a spread.
Both ways run in turn and the least of each is compared, so that other load hits both alike.
"""

from __future__ import annotations

import sys
import time

from deployc.cost.simulate import Delays, Limits, Load, Room, Trace, closed, lengths, poisson
from deployc.cost.simulate.cache import Cache
from deployc.cost.simulate.clock import Clock
from deployc.cost.simulate.scheduler import Scheduler
from deployc.cost.step import StepTime
from deployc.cost.step.work import Work

REQUESTS, ROUNDS = 1000, 7
BOUND = 1.2
"""A run of steps is never dearer than the steps by themselves; where lengths are spread it is often one or two."""
SAME = 1e-3
"""Of the time of the whole run: a run of steps takes the middle one's time."""


class Single(Scheduler):
    """Each step by itself."""

    def _until_change(self) -> int:
        return 1


def step_time(work: Work) -> StepTime:
    """As of a small model on a large card."""
    return StepTime(0.004 + work.context * 1e-8 + work.tokens * 2e-5, host=0.002, lead=0.001)


def timed(kind: type[Scheduler], load: Load, limits: Limits) -> tuple[float, Trace]:
    count = load.requests
    trace = Trace([0.0] * count, [0.0] * count, [0.0] * count)
    cache, clock = Cache(limits, load.shared_prefix), Clock(limits.ahead)
    run = kind(load, limits, Delays(1e-3, 5e-4), step_time, trace, cache, clock)
    began = time.perf_counter()
    run.run()
    return time.perf_counter() - began, trace


def main() -> int:
    alike = [1500] * REQUESTS, [256] * REQUESTS
    spread = lengths(REQUESTS, 1500, 4000, 1), lengths(REQUESTS, 256, 600, 2)
    limits = Limits(64, 8192, Room(100_000.0, 8.0, 1.0))
    failed = False
    for name, load in {
        "closed, alike": closed(*alike, 32),
        "closed, spread": closed(*spread, 32),
        "open, alike": poisson(*alike, 12.0),
        "open, spread": poisson(*spread, 12.0),
    }.items():
        pairs = [(timed(Scheduler, load, limits), timed(Single, load, limits)) for _ in range(ROUNDS)]
        run, single = (min(row[way][0] for row in pairs) for way in (0, 1))
        ends, each = (max(pairs[0][way][1].done) for way in (0, 1))
        print(
            f"{name:15} {run * 1e3:5.1f} ms / step by step {single * 1e3:5.1f} ms = {run / single:.2f} (bound {BOUND})"
        )
        failed |= run / single > BOUND or abs(ends / each - 1) > SAME
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
