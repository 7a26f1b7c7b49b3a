"""What a load sees by arithmetic alone, no queue followed: to tell which changes are worth a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping

from deployc.cost.engine import Engine
from deployc.cost.prediction import Setting
from deployc.cost.request import Request
from deployc.cost.steady import Steady, most_running, prompt_seconds, steady
from deployc.cost.step import Work

HALVINGS = 7
"""Of the range of rates: to less than a hundredth of it."""

Estimate = Mapping[str, float]
"""Seconds and 1/s of the whole deployment, by the names of the SLA; infinite where a queue grows for ever."""


def estimate(at: Setting, load: float | None = None) -> Estimate:
    """Under a load on one engine, in flight or arrivals a second; the stated one where none is given."""
    workload, replicas = at.deploy.workload, at.choices.replicas.value
    opened = workload.request_rate is not None
    if load is None:
        load = (
            (workload.request_rate or 0.0) / replicas if opened else math.ceil((workload.concurrency or 1) / replicas)
        )
    left = at.bill.kv_cache.value
    one, most = at.engine(left), most_running(at.room(left), at.choices.max_num_seqs.value)
    first, state = _open(one, at.request, most, load) if opened else _closed(one, at.request, most, int(load))
    requests = state.requests_per_second * replicas
    return {
        "ttft_p95": first,
        "tpot_p95": state.tpot,
        "e2e_p95": first + at.request.long_output * state.tpot,
        "requests_per_second": requests,
        "tokens_per_second": requests * at.request.output_tokens,
    }


def highest(at: Setting, limits: Mapping[str, float]) -> float:
    """Requests/s of all replicas under which no latency is above its limit; 0 where one request misses one."""
    left, replicas = at.bill.kv_cache.value, at.choices.replicas.value
    one, most = at.engine(left), most_running(at.room(left), at.choices.max_num_seqs.value)
    answered = _steady(one, at.request, most).requests_per_second
    if at.deploy.workload.request_rate is not None:
        low, high = 0.0, answered
        for _ in range(HALVINGS if limits else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if _inside(at, middle, limits) else (low, middle)
        return (low if limits else answered) * replicas
    fewest, least = 0, most
    while fewest < least:
        flight = (fewest + least + 1) // 2
        fewest, least = (flight, least) if _inside(at, flight, limits) else (fewest, flight - 1)
    return _steady(one, at.request, fewest).requests_per_second * replicas if fewest else 0.0


def _inside(at: Setting, load: float, limits: Mapping[str, float]) -> bool:
    found = estimate(at, load)
    return all(found[name] <= limit for name, limit in limits.items())


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
