"""The most that one engine serves inside the SLA's latencies, found from the stated load by a few more runs.

A load is a number: requests in flight, or arrivals as a share of the most that the engine answers. Which loads are
simulated depends on which of them met the limits, and between two of them each latency lies on a straight line: so a
tighter limit never gives a larger capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from deployc.cost.engine import Engine
from deployc.cost.request import Request, at_rate, in_flight
from deployc.cost.simulate import Outcome
from deployc.cost.steady import most_running, steady
from deployc.spec.deploy import Deploy
from deployc.spec.model import Sla

LATENCIES = ("ttft_p95", "tpot_p95", "e2e_p95")
PROBES = 2
"""Loads that are simulated beside the stated one and a single request: each halves what is not known."""
SURE = 0.97
"""Share of the load between two runs at which a limit is reached that is promised: the runs have a few hundred requests
each, and their percentiles scatter."""
TOWARDS_FULL = 0.4
"""Share of what is left idle at an open load that is left at the next one tried above it."""

Point = tuple[float, Outcome]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of one engine. `low` and `high`: were all latencies longer or shorter by their errors."""

    requests_per_second: float
    low: float
    high: float
    in_flight: tuple[int, int, int] | None = None  # of a closed load: likely, at least, at most


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of one engine, up to `most`: all that run at once, or as many arrivals as it answers."""

    engine: Engine
    deploy: Deploy
    request: Request
    running: int  # at once, at most
    replicas: int

    @property
    def opened(self) -> bool:
        """Whether requests come at a rate."""
        return self.deploy.workload.request_rate is not None

    @property
    def least(self) -> float:
        """One request at a time."""
        return 0.0 if self.opened else 1.0

    @property
    def most(self) -> float:
        """Above it an open load has no latency, and of a closed one more only wait."""
        return 1.0 if self.opened else max(float(self.running), self.stated)

    @property
    def highest(self) -> float:
        """Requests/s where as many run as can."""
        return self._rate(self.running)

    @property
    def stated(self) -> float:
        """This engine's share of the workload."""
        workload = self.deploy.workload
        if workload.request_rate is not None:
            return workload.request_rate / self.replicas / self.highest
        return float(ceil((workload.concurrency or 1) / self.replicas))

    def serve(self, load: float) -> Outcome:
        """A run under it."""
        if self.opened and load > 0:
            return self.engine.serve(at_rate(self.deploy, load * self.highest))
        return self.engine.serve(in_flight(self.deploy, max(1, round(load))))

    def rate(self, load: float) -> float:
        """Requests/s, in the steady state."""
        if self.opened:
            return load * self.highest
        return self._rate(min(int(load), self.running)) if load >= 1 else 0.0

    def between(self, low: float, high: float) -> float | None:
        """The load to try next; None where there is none between."""
        if self.opened:
            return (low + high) / 2 if high < self.most else high - (high - low) * TOWARDS_FULL
        middle = round(sqrt(low * high))
        return float(middle) if low < middle < high else None

    def beyond(self, points: Sequence[tuple[float, float]], limit: float) -> float:
        """The load above all tried ones at which a latency reaches its limit: open, it grows as a queue does
        (1 / (1 - load)); closed, on as between the last two."""
        (load, latency), before = points[-1], points[-2] if len(points) > 1 else (0.0, 0.0)
        if self.opened:
            return 1 - (1 - load) * latency / limit
        slope = (latency - before[1]) / (load - before[0])
        return min(self.most, load + (limit - latency) / slope) if slope > 0 else self.most

    def _rate(self, running: int) -> float:
        tokens = self.engine.limits.max_num_batched_tokens
        return steady(self.engine.step, self.request, running, tokens).requests_per_second


def capacity(
    engine: Engine, deploy: Deploy, request: Request, room: float, replicas: int, served: Outcome,
    errors: Mapping[str, float],
) -> Capacity:  # fmt: skip
    """Of one of the replicas. `room`: mean requests that the KV cache holds. `served`: under the stated load.

    Without limits on latency it is what the engine answers where as many run as can, by arithmetic. `errors`: factors
    each way of the latencies, by name.
    """
    loads = Loads(engine, deploy, request, most_running(room, engine.limits.max_num_seqs), replicas)
    limits = latencies(deploy.sla)
    if not limits:
        return Capacity(loads.highest, loads.highest, loads.highest, None if loads.opened else (loads.running,) * 3)
    points, low, high = _tried(loads, limits, served)
    near = [point for point in points if low <= point[0] <= high]
    load = max(low, SURE * largest(loads, near, limits)) if low < high else largest(loads, near, limits)
    shorter, longer = ({n: limit * errors[n] ** way for n, limit in limits.items()} for way in (1, -1))
    fewest, most = min(load, largest(loads, points, longer)), max(load, largest(loads, points, shorter))
    count = None if loads.opened else (int(load), int(fewest), int(most))
    return Capacity(loads.rate(load), loads.rate(fewest), loads.rate(most), count)


def latencies(sla: Sla) -> dict[str, float]:
    """The limits that bound a load from above, in seconds."""
    return {name: limit for name in LATENCIES if (limit := getattr(sla, name)) is not None}


def _tried(loads: Loads, limits: Mapping[str, float], served: Outcome) -> tuple[list[Point], float, float]:
    """The loads that were simulated, ascending, and between which two of them the limits are met no longer."""
    points = {loads.stated: served} if loads.stated < loads.most or not loads.opened else {}
    low, high = loads.least, loads.most
    if loads.stated != low:
        points[low] = loads.serve(low)
    if not meets(points[low], limits):
        return _ascending(points), low, low
    if loads.stated in points and loads.stated > low:
        low, high = (loads.stated, high) if meets(served, limits) else (low, loads.stated)
    for _ in range(PROBES):
        load = loads.between(low, high)
        if load is None:
            break
        points[load] = loads.serve(load)
        low, high = (load, high) if meets(points[load], limits) else (low, load)
    return _ascending(points), low, high


def _ascending(points: Mapping[float, Outcome]) -> list[Point]:
    """Ascending."""
    return sorted(points.items(), key=lambda point: point[0])


def meets(outcome: Outcome, limits: Mapping[str, float]) -> bool:
    """Whether no latency is above its limit."""
    return all(getattr(outcome, name) <= limit for name, limit in limits.items())


def largest(loads: Loads, points: Sequence[Point], limits: Mapping[str, float]) -> float:
    """The load at which the first of the latencies crosses its limit; 0 where the least load is too much already."""
    return min(
        _crossing(loads, [(load, getattr(outcome, name)) for load, outcome in points], limit)
        for name, limit in limits.items()
    )


def _crossing(loads: Loads, points: Sequence[tuple[float, float]], limit: float) -> float:
    before: tuple[float, float] | None = None
    for load, latency in points:
        if latency > limit:
            if before is None:
                return 0.0
            return before[0] + (load - before[0]) * (limit - before[1]) / (latency - before[1])
        before = load, latency
    return loads.beyond(points, limit)
