"""Memory and speed of the whole deployment, each figure with the band that the model's errors give it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from deployc.cost.bound import bound_by
from deployc.cost.capacity import capacity
from deployc.cost.engine import Engine, engine
from deployc.cost.kv_cache import Layout, layout
from deployc.cost.memory import memory
from deployc.cost.request import Request, mean_request, run_of
from deployc.cost.simulate import Outcome, unbounded
from deployc.cost.single_stream import single_stream
from deployc.cost.speed_basis import SpeedBasis, speed_basis
from deployc.cost.startup import startup
from deployc.cost.steady import most_running, steady
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure
from deployc.types.prediction import Prediction, Speed

LATENCIES = ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p95")


def predict(deploy: Deploy, facts: Facts, choices: Choices) -> Prediction:
    """The prediction of one configuration. Every figure of `speed` is of all replicas together."""
    bill, cache = memory(facts, choices)
    request = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value)
    basis, pages = speed_basis(facts, choices), layout(facts, choices)
    longest = math.ceil(request.long_input + request.long_output)
    at = partial(engine, facts, choices, basis, longest=longest)
    one, rooms = at(bill.kv_cache.value), {end: kv_room(pages, end, request) for end in set(_ends(bill.kv_cache))}
    served = _serve(deploy, one, request, choices, rooms[bill.kv_cache.value])
    ends = [
        served,
        *(_serve(deploy, at(end), request, choices, rooms[end]) for end in _felt(bill.kv_cache, rooms, choices)),
    ]
    over = math.isinf(served.ttft_p95)
    replicas, most = choices.replicas.value, rooms[bill.kv_cache.value]
    possible = capacity(one, deploy.sla, request, most) * replicas
    return Prediction(
        memory=bill,
        kv_cache_tokens=cache.tokens,
        usable_kv_cache_tokens=cache.usable,
        max_concurrency=cache.concurrency,
        kv_bytes_per_token=cache.bytes_per_token,
        speed=_speed(deploy, ends, basis, replicas, request),
        single_stream=single_stream(facts, choices, one, request, basis, basis.errors.of(basis.basis, "tpot_p50")),
        capacity=_around(possible, [possible], basis, "requests_per_second"),
        bound_by="cpu"
        if facts.smallest.name == "cpu"
        else bound_by(one, request, served, opened=deploy.workload.request_rate is not None and not over),
        startup_seconds=startup(facts, choices, bill.weights.value),
        over_capacity=over,
        transferred_from=basis.said,
    )


def kv_room(pages: Layout, available: float, request: Request) -> float:
    """Mean requests whose KV fits at once beside the null block; a prefix that they share is held once."""
    shared = int(request.input_tokens - request.uncached_tokens) * pages.token_bytes
    free = (pages.blocks(available) - 1) * pages.block_bytes
    each = pages.request_bytes(math.ceil(request.tokens)) - shared
    return max(0.0, free - shared) / each if each > 0 else math.inf


def _ends(figure: Figure) -> tuple[float, float, float]:
    return figure.value, figure.low, figure.high


def _felt(left: Figure, rooms: dict[float, float], choices: Choices) -> list[float]:
    """Ends of what is left for the KV cache that other figures follow from: those in which fewer run than may."""
    return [end for end in {left.low, left.high} - {left.value} if min(rooms.values()) < choices.max_num_seqs.value]


def _serve(deploy: Deploy, one: Engine, request: Request, choices: Choices, room: float) -> Outcome:
    """One engine under its share of the load; an open load above what it can do has no latency."""
    load, rate = run_of(deploy, choices.replicas.value), deploy.workload.request_rate
    served = one.serve(load)
    if rate is None:
        return served
    running = most_running(room, choices.max_num_seqs.value)
    highest = steady(one.step, request, running, choices.max_num_batched_tokens.value).requests_per_second
    if rate / choices.replicas.value < highest:
        return replace(served, requests_per_second=rate / choices.replicas.value)
    return unbounded(served, highest)


def _speed(deploy: Deploy, ends: list[Outcome], basis: SpeedBasis, replicas: int, request: Request) -> Speed:
    """The first of `ends` is the prediction; the others widen its band."""
    served = ends[0]
    of = {name: _around(getattr(served, name), [getattr(e, name) for e in ends], basis, name) for name in LATENCIES}
    of["ttft_p95"] = _not_below(of["ttft_p95"], of["ttft_p50"])
    of["tpot_p95"] = _not_below(of["tpot_p95"], of["tpot_p50"])
    of["e2e_p95"] = _not_below(of["e2e_p95"], of["ttft_p95"])
    rates = [end.requests_per_second * replicas for end in ends]
    rate = _around(rates[0], rates, basis, "requests_per_second")
    tokens = [end.tokens_per_second * replicas for end in ends]
    if deploy.workload.request_rate is not None:
        tokens = [each * request.output_tokens for each in rates]
        if not math.isinf(served.ttft_p95):
            rate = replace(rate, high=rate.value)  # no more come than are sent
    output = _around(tokens[0], tokens, basis, "tokens_per_second")
    return Speed(requests_per_second=rate, tokens_per_second=output, **of)


def _around(value: float, ends: list[float], basis: SpeedBasis, quantity: str) -> Figure:
    """The band: the model's error each way, around all ends that the memory's own band leads to."""
    error, unit = basis.errors.of(basis.basis, quantity), "1/s" if quantity.endswith("second") else "s"
    return Figure(value, min(ends) / error, max(ends) * error, unit, basis.basis)


def _not_below(figure: Figure, part: Figure) -> Figure:
    """The band of what is never less than another figure: neither end lies under that one's."""
    low, high = max(figure.low, min(part.low, figure.value)), max(figure.high, part.high)
    return Figure(figure.value, low, high, figure.unit, figure.basis)
