"""From the time of a step to what users see: throughput, TTFT and TPOT of one engine under its share of the load.

Steady state: while n requests run, each needs its prefill once and a decode step for every output token, so
n requests take output x step(n) + n x prefill seconds. No simulation: queues are bounded, not followed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from deployc.cost.step import Step


@dataclass(frozen=True, slots=True)
class Request:
    """The mean request in tokens: prompt (all of it, and what is not in the prefix cache) and answer."""

    input_tokens: float
    uncached_tokens: float
    output_tokens: float
    long_input: float  # 95th percentile
    long_output: float

    @property
    def tokens(self) -> float:
        """Prompt and answer together."""
        return self.input_tokens + self.output_tokens

    @property
    def context(self) -> float:
        """Tokens of KV at the middle of the answer."""
        return self.input_tokens + self.output_tokens / 2


@dataclass(frozen=True, slots=True)
class Served:
    """Seconds and 1/s of one engine."""

    ttft_p50: float
    ttft_p95: float
    tpot_p50: float
    tpot_p95: float
    e2e_p95: float
    requests_per_second: float
    running: float
    over_capacity: bool = False


def rate_at(step: Step, request: Request, running: float) -> float:
    """Requests a second while `running` are in flight."""
    return running / cycle(step, request, running)


def cycle(step: Step, request: Request, running: float) -> float:
    """Seconds that a batch of `running` requests takes from first prefill to last token."""
    prefill = prefill_seconds(step, request)
    return step.front + request.output_tokens * step.decode(running, request.context) + running * prefill


def prefill_seconds(step: Step, request: Request) -> float:
    """Seconds of matrix work of one prompt."""
    return step.prefill(request.uncached_tokens, request.input_tokens - request.uncached_tokens)


def closed(step: Step, request: Request, concurrency: float, room: float, tail: float) -> Served:
    """`concurrency` requests in flight at all times, of which the engine runs at most `room`; the rest wait."""
    running = max(min(concurrency, room), min(concurrency, 1.0))
    rate = rate_at(step, request, running)
    waiting = max(0.0, concurrency - running) / rate
    prefill = prefill_seconds(step, request)
    first = _first_token(step, request, running, prefill, rate)
    burst = 0.95 * running * prefill + step.front  # all are sent at once at the start: the last waits for all prompts
    return _served(step, request, running, rate, waiting + first, waiting + max(first, burst), tail)


def opened(step: Step, request: Request, rate: float, room: float, tail: float) -> Served:
    """Requests arrive at `rate` a second; above what the engine can do, the queue grows without bound."""
    highest = rate_at(step, request, room)
    if rate >= highest:
        full = closed(step, request, room, room, tail)
        return replace(full, ttft_p50=inf, ttft_p95=inf, e2e_p95=inf, requests_per_second=highest, over_capacity=True)
    running = settle(step, request, rate, room)
    prefill = prefill_seconds(step, request)
    busy = min(0.95, rate / highest)
    # the rest of a step, then the prompts before it: the mean wait of M/D/1 (Pollaczek-Khinchine)
    first = _alone(step, prefill) + step.decode(running, request.context) + busy / (1 - busy) * prefill / 2
    return _served(step, request, running, rate, first, first * tail, tail)


def settle(step: Step, request: Request, rate: float, room: float) -> float:
    """Requests in flight at which the engine keeps up with `rate` (Little's law), by bisection."""
    low, high = 0.0, room
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rate_at(step, request, max(middle, 1e-6)) < rate else (low, middle)
    return max(high, 1e-6)


def _first_token(step: Step, request: Request, running: float, prefill: float, rate: float) -> float:
    """The rest of the current step, one step more (scheduling acts two deep), the prompt itself, prompts before it."""
    busy = min(0.9, rate * prefill)
    if running <= 1:
        return _alone(step, prefill)
    before = prefill + 3 * busy * prefill / (1 - busy)
    return _alone(step, prefill) + 1.5 * step.decode(running, request.context) + before


def _alone(step: Step, prefill: float) -> float:
    """A request that meets an idle engine."""
    return step.front + step.fixed + prefill + step.weight_seconds + step.expert_seconds


def _served(
    step: Step, request: Request, running: float, rate: float, first: float, late: float, tail: float
) -> Served:
    others = max(0.0, running - 1) * prefill_seconds(step, request) / request.output_tokens
    token = step.decode(running, request.context) + others
    slow = step.decode(running, request.long_input + request.long_output) + others * min(tail, 1.5)
    whole = late + request.long_output * token
    return Served(first, max(first, late), token, max(token, slow), whole, rate, running)
