"""What no simulated run of a configuration is better than, by arithmetic on its totals: no queue is followed.

Time. A run must decode so many tokens over so much context and compute so many prompt tokens. A step takes at most
max_num_seqs sequences, what the cache holds, and max_num_batched_tokens; its time is convex in what it takes, but for
the edges of graphs, which are taken as if every step had the cheaper kind. So no run is faster than one of equal steps
that are as full as they can be; how many of them take prompts is tried out.

Latency. The scheduler leaves no place empty: while fewer decode than can, a step is filled with prompts. So a decoding
sequence waits for a step of nearly all places, or for a step of prompts. Requests in flight over requests a second is
the mean of the whole time (Little's law), and of it a 95th percentile is no less.

`SHORT`, `EVEN` and `LIKE_MEAN` are for what these leave out: edges of graphs, sequences that wait for their client, the
end of a run. tests/choose/test_tune_bound.py holds them against simulations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from deployc.choose.tune.totals import Totals
from deployc.cost.engine import Engine
from deployc.cost.prediction import Setting
from deployc.cost.step import Step, Work
from deployc.types.figure import Figure
from deployc.types.prediction import Speed

SHORT, EVEN, LIKE_MEAN = 0.97, 0.95, 0.8
"""Shares of a sum of step times, of the time of a typical step, and of a mean, that the simulation stays above."""
ENDLESS = 2**30
"""Tokens up to which graphs hold a step of the lenient engine."""
STEADY = 1.01
"""Times that the steady state may come out higher once more: a step of nearly the same work counts as the same."""
GAP = 4
"""Steps between a sequence's end and the first step of the next in its place, its own prompt apart."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the whole deployment. Latencies in s are at least this, rates in 1/s at most."""

    ttft_p95: float
    tpot_p95: float
    e2e_p95: float
    requests_per_second: float
    tokens_per_second: float
    over_capacity: bool = False  # known for certain: an open load is compared with the steady state, not simulated


def bounds(at: Setting, work: Totals) -> Bounds:
    """`work`: the totals of the very run that would be simulated."""
    one, replicas = at.engine(at.bill.kv_cache.value), at.choices.replicas.value
    rate, step = at.deploy.workload.request_rate, _lenient(one)
    context = work.mean_context if _looks_back(one) else float(work.shortest)
    first, whole = _alone(work, one, step)
    if rate is not None:
        highest = at.highest(one, at.bill.kv_cache.value) * STEADY
        over = rate / replicas >= highest
        per_second = highest * replicas if over else rate
        tpot = _open_tpot(step, work, 0.0 if over else rate / replicas, one, context)
        return Bounds(first, tpot, whole, per_second, per_second * at.request.output_tokens, over)
    most = most_decodes(one, work)
    least = SHORT * least_seconds(step, one, work, most, context)
    per_second = work.requests / least
    waiting = max(0, work.concurrency - most) / per_second
    first = max(first, _burst(work, one, step), LIKE_MEAN * waiting)
    whole = max(whole, LIKE_MEAN * work.concurrency / per_second)
    tpot = _closed_tpot(step, work, one, context)
    return Bounds(first, tpot, whole, per_second * replicas, work.answered / least * replicas)


def optimistic(at: Setting, of: Bounds) -> Speed:
    """The bounds as figures, each with the band that the model's error gives it: what the SLA is judged by."""
    latencies = {name: _figure(at, name, getattr(of, name)) for name in ("ttft_p95", "tpot_p95", "e2e_p95")}
    rates = {name: _figure(at, name, getattr(of, name)) for name in ("requests_per_second", "tokens_per_second")}
    if at.deploy.workload.request_rate is not None and not of.over_capacity:
        rates["requests_per_second"] = replace(rates["requests_per_second"], high=of.requests_per_second)
    return Speed(ttft_p50=latencies["ttft_p95"], tpot_p50=latencies["tpot_p95"], **latencies, **rates)


def least_seconds(step: Step, one: Engine, work: Totals, most: int, context: float) -> float:
    """The time of a run in equal steps: over how many of them take prompts, and how many decode beside these.

    `most` sequences decode in a full step, each with `context` tokens before it.
    """
    plain = step.seconds(Work(most, most * context)) / most  # of one token
    return min(_mixed(step, one, work, most, context, plain))


def _mixed(step: Step, one: Engine, work: Totals, most: int, context: float, plain: float) -> Iterator[float]:
    budget = one.limits.max_num_batched_tokens
    area = work.area / work.prompts if _looks_back(one) else 0.0
    for part in sorted({min(budget, math.ceil(work.prompts / count)) for count in _counts(work, budget, most)}):
        count = work.prompts / part
        begun = math.floor(work.requests / count)
        for beside in {0, most, min(most, round(work.decoded / count))}:
            mixed = Work(beside, beside * context, 1, part, part * area, begun, begun)
            left = work.decoded - count * min(beside, work.decoded / count)
            yield count * step.seconds(mixed) + left * plain


def _counts(work: Totals, budget: int, most: int) -> Iterator[float]:
    """Steps with prompts: from as few as there can be to one for every step."""
    few = max(1.0, work.prompts / budget)
    many = max(few, work.decoded / most)
    for share in (0.0, 0.15, 0.35, 0.6, 1.0):
        yield few * (many / few) ** share


def most_decodes(one: Engine, work: Totals) -> int:
    """Sequences of a step, on average over all steps: by places, by requests, and by what they hold of the cache."""
    limits, room = one.limits, one.limits.room
    most = min(limits.max_num_seqs, work.concurrency or work.requests, limits.max_num_batched_tokens)
    held = room.base * work.decoded + room.token * work.held
    if held > 0 and math.isfinite(room.bytes):
        most = min(most, math.ceil(room.bytes * work.decoded / held))
    return max(1, most)


def _looks_back(one: Engine) -> bool:
    """Whether every layer reads all that came before: then what is read grows evenly, and a mean stands for all."""
    return all(math.isinf(most) for most, _ in (*one.step.shape.kv_reads, *one.step.shape.attention))


def _lenient(one: Engine) -> Step:
    """The engine's steps if graphs held every one of them."""
    shape = replace(one.step.shape, largest_full_graph=ENDLESS, largest_graph=ENDLESS)
    return Step(shape, one.step.constants)


def _alone(work: Totals, one: Engine, step: Step) -> tuple[float, float]:
    """95th percentiles of the first token and of the whole answer, were each request alone on the engine."""
    each = SHORT * step.seconds(Work(1, float(work.shortest)))
    first = _prompt_alone(work, one, step, work.long_input)
    shortest = first if work.long_input == work.shortest else _prompt_alone(work, one, step, work.shortest)
    return first, max(first + (work.shortest_answer - 1) * each, shortest + (work.long_answer - 1) * each)


def _prompt_alone(work: Totals, one: Engine, step: Step, tokens: float) -> float:
    constants, fresh = one.constants, max(1, round(tokens) - work.cached)
    part = min(fresh, one.limits.max_num_batched_tokens)
    area = part * (tokens - fresh / 2) if _looks_back(one) else 0.0
    seconds = fresh / part * step.seconds(Work(0, 0.0, 1, part, area))
    return constants.front + constants.front_token * tokens + constants.travel + SHORT * seconds


def _burst(work: Totals, one: Engine, step: Step) -> float:
    """A closed load begins with all of its requests at once, and they are taken in order: of the slowest 5 % of all,
    so many are among the last of these."""
    if not work.burst:
        return 0.0
    part = min(work.burst, one.limits.max_num_batched_tokens)
    return one.constants.front + SHORT * work.burst / part * step.seconds(Work(0, 0.0, 1, part))


def _closed_tpot(step: Step, work: Totals, one: Engine, context: float) -> float:
    """A step of nearly all places, or one of prompts."""
    if not work.decoded:
        return 0.0
    room, mean = one.limits.room, work.decoded / work.requests
    places = min(one.limits.max_num_seqs, work.concurrency)
    if math.isfinite(room.bytes):
        largest = room.held(work.longest + work.longest_answer)
        places = min(places, max(1, math.floor((room.bytes - room.held(work.longest)) / max(1.0, largest))))
    budget = one.limits.max_num_batched_tokens
    alone = step.seconds(Work(1, float(work.shortest)))
    gap = GAP + math.ceil(work.prompts / work.requests / budget) + one.constants.travel / alone
    running = max(1, math.floor(places * mean / (mean + gap)))
    filled = step.seconds(Work(0, 0.0, 1, budget))
    return EVEN * min(step.seconds(Work(running, running * _early(work, context))), filled)


def _open_tpot(step: Step, work: Totals, rate: float, one: Engine, context: float) -> float:
    """To keep up, so many must decode at once that their steps give as many tokens a second as are asked for."""
    if not work.decoded:
        return 0.0
    asked, context = LIKE_MEAN * rate * work.decoded / work.requests, _early(work, context)
    low, high = 1, max(1, one.limits.max_num_seqs)
    while low < high:  # the fewest that give as much
        middle = (low + high) // 2
        if middle / step.seconds(Work(middle, middle * context)) >= asked:
            high = middle
        else:
            low = middle + 1
    return EVEN * step.seconds(Work(low, low * context))


def _early(work: Totals, context: float) -> float:
    """A context that most steps pass: a quarter of the mean answer before the mean one."""
    return max(float(work.shortest), context - work.decoded / work.requests / 4)


def _figure(at: Setting, name: str, value: float) -> Figure:
    error = at.basis.errors.of(at.basis.basis, name)
    return Figure(value, value / error, value * error, "1/s" if name.endswith("second") else "s", at.basis.basis)
