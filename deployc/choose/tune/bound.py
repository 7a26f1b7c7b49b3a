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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from deployc.choose.tune.lenient import Lenient
from deployc.choose.tune.totals import Totals
from deployc.cost.prediction import Setting
from deployc.cost.step import Work
from deployc.types.figure import Figure
from deployc.types.prediction import Speed

Seconds = Callable[[Work], float]

SHORT, EVEN, LIKE_MEAN = 0.97, 0.95, 0.87
"""Shares of a sum of step times, of the time of a typical step, and of a mean, that the simulation stays above."""
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


def bounds(at: Setting, work: Totals, one: Lenient) -> Bounds:
    """`work`: the totals of the very run that would be simulated; `one`: the engine."""
    replicas, rate = at.choices.replicas.value, at.deploy.workload.request_rate
    context = work.mean_context if one.looks_back else float(work.shortest)
    first, whole = _alone(work, one)
    if rate is not None:
        left = at.bill.kv_cache.value
        highest = at.highest(at.engine(left), left) * STEADY
        over = rate / replicas >= highest
        per_second = highest * replicas if over else rate
        tpot = _open_tpot(work, 0.0 if over else rate / replicas, one, context)
        return Bounds(first, tpot, whole, per_second, per_second * at.request.output_tokens, over)
    most = most_decodes(one, work)
    least = SHORT * max(least_seconds(part, one, work, most, context) for part in (one.gpu, one.host))
    per_second = work.requests / least
    waiting = max(0, work.concurrency - most) / per_second
    first = max(first, _burst(work, one), LIKE_MEAN * waiting)
    whole = max(whole, LIKE_MEAN * work.concurrency / per_second)
    tpot = _closed_tpot(work, one, context)
    return Bounds(first, tpot, whole, per_second * replicas, work.answered / least * replicas)


def optimistic(at: Setting, of: Bounds) -> Speed:
    """The bounds as figures, each with the band that the model's error gives it: what the SLA is judged by."""
    latencies = {name: _figure(at, name, getattr(of, name)) for name in ("ttft_p95", "tpot_p95", "e2e_p95")}
    rates = {name: _figure(at, name, getattr(of, name)) for name in ("requests_per_second", "tokens_per_second")}
    if at.deploy.workload.request_rate is not None:  # as many are answered as come, if they can be
        rates = {name: replace(rate, low=rate.value) for name, rate in rates.items()}
    return Speed(ttft_p50=latencies["ttft_p95"], tpot_p50=latencies["tpot_p95"], **latencies, **rates)


def least_seconds(seconds: Seconds, one: Lenient, work: Totals, most: int, context: float) -> float:
    """The time of a run in equal steps: over how many of them take prompts, and how many decode beside these.

    `seconds`: of a step, on the GPU or on the host. `most` sequences decode in a full step, each with `context` tokens
    before it.
    """
    plain = seconds(Work(most, most * context)) / most  # of one token
    return min(_mixed(seconds, one, work, most, context, plain))


def _mixed(seconds: Seconds, one: Lenient, work: Totals, most: int, context: float, plain: float) -> Iterator[float]:
    budget = one.limits.max_num_batched_tokens
    area = work.area / work.prompts if one.looks_back else 0.0
    for part in sorted({min(budget, math.ceil(work.prompts / count)) for count in _counts(work, budget, most)}):
        count = work.prompts / part
        begun = math.floor(work.requests / count)
        for beside in {0, most, min(most, round(work.decoded / count))}:
            mixed = Work(beside, beside * context, 1, part, part * area, begun, begun)
            left = work.decoded - count * min(beside, work.decoded / count)
            yield count * seconds(mixed) + left * plain


def _counts(work: Totals, budget: int, most: int) -> Iterator[float]:
    """Steps with prompts: from as few as there can be to one for every step."""
    few = max(1.0, work.prompts / budget)
    many = max(few, work.decoded / most)
    for share in (0.0, 0.15, 0.35, 0.6, 1.0):
        yield few * (many / few) ** share


def most_decodes(one: Lenient, work: Totals) -> int:
    """Sequences of a step, on average over all steps: by places, by requests, and by what they hold of the cache."""
    limits, room = one.limits, one.limits.room
    most = min(limits.max_num_seqs, work.concurrency or work.requests, limits.max_num_batched_tokens)
    held = room.base * work.decoded + room.token * work.held
    if held > 0 and math.isfinite(room.bytes):
        most = min(most, math.ceil(room.bytes * work.decoded / held))
    return max(1, most)


def _alone(work: Totals, one: Lenient) -> tuple[float, float]:
    """95th percentiles of the first token and of the whole answer, were each request alone on the engine."""
    before = one.constants.front + one.constants.travel
    long, short = (_request_alone(work, one, tokens) for tokens in (work.long_input, work.shortest))
    whole = max(long(work.shortest_answer - 1), short(work.long_answer - 1))
    return before + SHORT * long(0), before + SHORT * whole


def _request_alone(work: Totals, one: Lenient, tokens: float) -> Callable[[float], float]:
    """Seconds of a prompt of so many tokens and of so many more of its answer."""
    fresh, decode = max(1, round(tokens) - work.cached), Work(1, float(work.shortest))
    part = min(fresh, one.limits.max_num_batched_tokens)
    area = part * (tokens - fresh / 2) if one.looks_back else 0.0
    prompt, parts = Work(0, 0.0, 1, part, area), fresh / part
    return lambda more: max(parts * of(prompt) + more * of(decode) for of in (one.gpu, one.host))


def _burst(work: Totals, one: Lenient) -> float:
    """A closed load begins with all of its requests at once, and they are taken in order: of the slowest 5 % of all,
    so many are among the last of these."""
    if not work.burst:
        return 0.0
    part = min(work.burst, one.limits.max_num_batched_tokens)
    return one.constants.front + SHORT * work.burst / part * one.seconds(Work(0, 0.0, 1, part))


def _closed_tpot(work: Totals, one: Lenient, context: float) -> float:
    """A step of nearly all places, or one of prompts."""
    if not work.decoded:
        return 0.0
    room, mean = one.limits.room, work.decoded / work.requests
    places = min(one.limits.max_num_seqs, work.concurrency)
    if math.isfinite(room.bytes):
        largest = room.held(work.longest + work.longest_answer)
        places = min(places, max(1, math.floor((room.bytes - room.held(work.longest)) / max(1.0, largest))))
    budget = one.limits.max_num_batched_tokens
    alone = one.seconds(Work(1, float(work.shortest)))
    gap = GAP + math.ceil(work.prompts / work.requests / budget) + one.constants.travel / alone
    running = max(1, math.floor(places * mean / (mean + gap)))
    return EVEN * one.either(mean, Work(running, running * _early(work, context)), Work(0, 0.0, 1, budget))


def _open_tpot(work: Totals, rate: float, one: Lenient, context: float) -> float:
    """To keep up, so many must decode at once that their steps give as many tokens a second as are asked for."""
    if not work.decoded:
        return 0.0
    mean, context = work.decoded / work.requests, _early(work, context)
    asked = LIKE_MEAN * rate * mean
    low, high = 1, max(1, one.limits.max_num_seqs)
    while low < high:  # the fewest that give as much
        middle = (low + high) // 2
        if middle / one.seconds(Work(middle, middle * context)) >= asked:
            high = middle
        else:
            low = middle + 1
    return EVEN * one.either(mean, Work(low, low * context))


def _early(work: Totals, context: float) -> float:
    """A context that most steps pass: a quarter of the mean answer before the mean one."""
    return max(float(work.shortest), context - work.decoded / work.requests / 4)


def _figure(at: Setting, name: str, value: float) -> Figure:
    error = at.basis.error(name)
    return Figure(value, value / error, value * error, "1/s" if name.endswith("second") else "s", at.basis.basis)
