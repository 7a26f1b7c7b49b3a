"""What a load sees by arithmetic alone, no queue followed: to tell which changes are worth a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from deployc.cost.engine import Engine
from deployc.cost.prediction import Setting
from deployc.cost.request import Request
from deployc.cost.steady import Steady, most_running, prompt_seconds, steady
from deployc.cost.step import Work

HALVINGS = 7
"""Of the range of rates: to less than a hundredth of it."""

Estimate = Mapping[str, float]
"""Seconds and 1/s of the whole deployment, by the names of the SLA; infinite where a queue grows for ever."""


def estimate(at: Setting) -> Estimate:
    """Under the stated load."""
    workload, replicas = at.deploy.workload, at.choices.replicas.value
    rate, flight = (workload.request_rate or 0.0) / replicas, math.ceil((workload.concurrency or 1) / replicas)
    first, state = _under(_Most.of(at), flight if workload.request_rate is None else rate)
    requests = state.requests_per_second * replicas
    return {
        **_latencies(at.request, first, state),
        "requests_per_second": requests,
        "tokens_per_second": requests * at.request.output_tokens,
    }


def highest(at: Setting, limits: Mapping[str, float]) -> float:
    """Requests/s of all replicas under which no latency is above its limit; 0 where one request misses one."""
    most, replicas = _Most.of(at), at.choices.replicas.value
    answered = _steady(most.engine, at.request, most.running).requests_per_second
    if not limits:
        return answered * replicas

    def inside(load: float) -> bool:
        found = _latencies(at.request, *_under(most, load))
        return all(found[name] <= limit for name, limit in limits.items())

    if most.opened:
        low, high = 0.0, answered
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if inside(middle) else (low, middle)
        return low * replicas
    fewest, least = 0, most.running
    while fewest < least:
        flight = (fewest + least + 1) // 2
        fewest, least = (flight, least) if inside(flight) else (fewest, flight - 1)
    return _steady(most.engine, at.request, fewest).requests_per_second * replicas if fewest else 0.0


@dataclass(frozen=True, slots=True)
class _Most:
    """One engine and how many requests it runs at once, at most."""

    engine: Engine
    request: Request
    running: int
    opened: bool

    @classmethod
    def of(cls, at: Setting) -> _Most:
        left = at.bill.kv_cache.value
        running = most_running(at.room(left), at.choices.max_num_seqs.value)
        return cls(at.engine(left), at.request, running, at.deploy.workload.request_rate is not None)


def _under(most: _Most, load: float) -> tuple[float, Steady]:
    """Seconds to the first token, and the steady state, under a load on one engine."""
    if most.opened:
        return _open(most.engine, most.request, most.running, load)
    return _closed(most.engine, most.request, most.running, int(load))


def _latencies(request: Request, first: float, state: Steady) -> dict[str, float]:
    return {"ttft_p95": first, "tpot_p95": state.tpot, "e2e_p95": first + request.long_output * state.tpot}


def _closed(one: Engine, request: Request, most: int, flight: int) -> tuple[float, Steady]:
    """All come at once: the last has the prompts of those that run before it, and waits for a place if more come."""
    running = min(most, flight)
    state = _steady(one, request, running)
    waits = (flight - running) / state.requests_per_second
    return _alone(one, request) + _prompt(one, request, running) * (running - 1) + waits, state


def _open(one: Engine, request: Request, most: int, rate: float) -> tuple[float, Steady]:
    """As many run as answer the rate; a request meets half a step, one more, and the prompts that came before it."""
    highest = _steady(one, request, most)
    if rate >= highest.requests_per_second:
        return math.inf, highest
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _steady(one, request, middle).requests_per_second >= rate else (middle + 1, high)
    state, prompt = _steady(one, request, low), _prompt(one, request, low)
    decode = one.step.seconds(Work(low, low * request.context))
    busy = min(0.95, rate * prompt)
    first = _alone(one, request) + 1.5 * decode + prompt * busy / (1 - busy) / 2
    return first, Steady(low, state.tpot, rate)


def _alone(one: Engine, request: Request) -> float:
    """Seconds to the first token of a long prompt that meets an idle engine."""
    times = max(1.0, request.long_input / request.input_tokens)
    plain = one.step.seconds(Work(1, request.context))
    return one.constants.front + one.constants.travel + plain + times * _prompt(one, request, 1)


def _steady(one: Engine, request: Request, running: int) -> Steady:
    return steady(one.step, request, running, one.limits.max_num_batched_tokens)


def _prompt(one: Engine, request: Request, running: int) -> float:
    return prompt_seconds(one.step, request, running, one.limits.max_num_batched_tokens)
