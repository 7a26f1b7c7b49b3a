"""The steady state of one engine by arithmetic, without following a queue: bounds, and where a search begins.

While n requests run, each needs its prompt once and a step for every output token; a prompt's cost is what it adds to
a step that decodes anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc.cost.request import Request
from deployc.cost.step import Step, Work


@dataclass(frozen=True, slots=True)
class Steady:
    """n requests always running: seconds and 1/s of one engine."""

    running: float
    tpot: float
    requests_per_second: float


def steady(step: Step, request: Request, running: int, max_num_batched_tokens: int) -> Steady:
    """`running` requests at once, their prompts spread evenly over the steps; fewer where these leave no place for so
    many prompts beside them. There are no fewer steps than hold all tokens."""
    tokens = request.uncached_tokens + request.output_tokens
    running = min(running, max(1, int(max_num_batched_tokens * request.output_tokens / tokens)))
    decode = step.seconds(Work(running, running * request.context))
    added = prompt_seconds(step, request, running, max_num_batched_tokens)
    cycle = max(
        request.output_tokens * decode + running * added,
        running * tokens / max(1, max_num_batched_tokens) * decode,
    )
    return Steady(running, cycle / max(1.0, request.output_tokens), running / cycle)


def prompt_seconds(step: Step, request: Request, running: int, max_num_batched_tokens: int) -> float:
    """What the mean prompt adds to steps that decode `running` sequences: in parts where it is longer than a step, its
    share of a step where more than one begins with each. Never less than nothing: a full graph pads its batch, and a
    prompt of few tokens would seem to save that."""
    together = max(1.0, running / max(1.0, request.output_tokens))
    tokens = together * request.uncached_tokens
    parts = math.ceil(tokens / max(1, max_num_batched_tokens - running))
    part, ends = round(tokens / parts), round(together / parts)
    area = part * (request.input_tokens - request.uncached_tokens / 2)
    plain = Work(running, running * request.context)
    mixed = plain._replace(prompts=1, tokens=part, area=area, finished=ends, begun=ends)
    return parts * max(0.0, step.seconds(mixed) - step.seconds(plain)) / together


def most_running(room: float, max_num_seqs: int) -> int:
    """Requests that one engine runs at once: by KV cache and by max_num_seqs; at least one, if only on paper."""
    return max(1, int(min(float(max_num_seqs), room)))
