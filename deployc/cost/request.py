"""The workload's requests: the mean one, and the run of them that a prediction simulates."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from deployc.cost.simulate import Load, Trace, closed, lengths, poisson
from deployc.cost.simulate.outcome import percentile
from deployc.spec.deploy import Deploy
from deployc.spec.model import Spread

TURNS = 4
"""Requests of a closed run for each one in flight: a quarter of them meets the start, when all come at once."""
AT_LEAST, AT_MOST, OPEN = 64, 8192, 600
"""Requests of a short closed run, of a long one where not more are in flight at once, and of an open one."""
SEEDS = (11, 12, 13)
"""Of input lengths, output lengths and arrivals: the same file gives the same figures."""


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


def mean_request(deploy: Deploy, *, prefix_caching: bool = True) -> Request:
    """The workload's request, in tokens. Without a spread the 95th percentile is the number itself."""
    asked, answer = deploy.workload.input_tokens, deploy.workload.output_tokens
    mean_in, long_in = (asked.mean, asked.p95) if isinstance(asked, Spread) else (asked, asked)
    mean_out, long_out = (answer.mean, answer.p95) if isinstance(answer, Spread) else (answer, answer)
    cached = min(deploy.workload.shared_prefix_tokens, mean_in - 1) if prefix_caching else 0
    return Request(mean_in, mean_in - cached, mean_out, long_in, long_out)


def run_of(deploy: Deploy, replicas: int) -> Load:
    """The run of one engine: its share of the requests in flight, or of those that arrive."""
    rate = deploy.workload.request_rate
    if rate is not None:
        return at_rate(deploy, rate / replicas)
    return in_flight(deploy, ceil((deploy.workload.concurrency or 1) / replicas))


def in_flight(deploy: Deploy, concurrency: int) -> Load:
    """A closed run with so many in flight on one engine."""
    count = max(AT_LEAST, concurrency, min(TURNS * concurrency, AT_MOST))
    return closed(*_lengths(deploy, count), concurrency, deploy.workload.shared_prefix_tokens)


def at_rate(deploy: Deploy, rate: float) -> Load:
    """An open run with so many arrivals a second on one engine."""
    return poisson(*_lengths(deploy, OPEN), rate, deploy.workload.shared_prefix_tokens, SEEDS[2])


def slowest_at_start(load: Load, trace: Trace) -> bool:
    """Whether the slowest twentieth of the first tokens are those of the start of a closed run, when all that are in
    flight come at once: of the others 95 % wait a fifth less long."""
    waits = [first - sent for first, sent in zip(trace.first, trace.sent, strict=True)]
    later = sorted(waits[load.concurrency :])
    return load.concurrency > 1 and bool(later) and percentile(later, 0.95) < 0.8 * percentile(sorted(waits), 0.95)


def _lengths(deploy: Deploy, count: int) -> tuple[list[int], list[int]]:
    request = mean_request(deploy)
    inputs = lengths(count, request.input_tokens, request.long_input, SEEDS[0])
    return inputs, lengths(count, request.output_tokens, request.long_output, SEEDS[1])
