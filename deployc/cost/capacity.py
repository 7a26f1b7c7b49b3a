"""The most requests a second that one engine serves inside the SLA's latencies."""

from __future__ import annotations

from deployc.cost.engine import Engine
from deployc.cost.request import Request
from deployc.cost.steady import Steady, most_running, prompt_seconds, steady
from deployc.cost.step import Work
from deployc.spec.model import Sla


def capacity(engine: Engine, sla: Sla, request: Request, room: float) -> float:
    """In the steady state, by arithmetic; 0 where not even one request meets the limits.

    `room`: mean requests that the KV cache holds.
    """
    low, high = 0, most_running(room, engine.limits.max_num_seqs)
    best = 0.0
    while low < high:
        middle = (low + high + 1) // 2
        at = steady(engine.step, request, middle, engine.limits.max_num_batched_tokens)
        if inside(engine, sla, request, at):
            low, best = middle, max(best, at.requests_per_second)
        else:
            high = middle - 1
    return best


def inside(engine: Engine, sla: Sla, request: Request, at: Steady) -> bool:
    """Whether a steady state meets the limits on latency."""
    first = first_token(engine, request, at)
    whole = first + request.long_output * at.tpot
    return (
        (sla.tpot_p95 is None or at.tpot <= sla.tpot_p95)
        and (sla.ttft_p95 is None or first <= sla.ttft_p95)
        and (sla.e2e_p95 is None or whole <= sla.e2e_p95)
    )


def first_token(engine: Engine, request: Request, at: Steady) -> float:
    """A request that meets a busy engine: half of a step, one step more, its own prompt, and the prompts before it."""
    running, constants = int(at.running), engine.constants
    decode = engine.step.seconds(Work(running, running * request.context))
    prompt = prompt_seconds(engine.step, request, running, engine.limits.max_num_batched_tokens)
    busy = min(0.95, at.requests_per_second * prompt)
    front = constants.front + constants.front_token * request.input_tokens + constants.travel
    waits = 1.5 * decode if running > 1 else 0.0
    return front + waits + decode + prompt * (1 + busy / (1 - busy) / 2)
