"""Memory and speed of the whole deployment, each figure with the band that the constants' ranges give it."""

from __future__ import annotations

import math

from deployc.cost import load
from deployc.cost.kv_cache import Layout, layout
from deployc.cost.load import Request, Served
from deployc.cost.memory import memory
from deployc.cost.startup import startup
from deployc.cost.step import Step, bytes_for_one_token, step
from deployc.spec.deploy import Deploy
from deployc.spec.model import Spread
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Basis, Figure
from deployc.types.prediction import Bound, Prediction, SingleStream, Speed

MODEL_ERROR = 1.2
"""How far the roofline may be off beyond its constants' ranges, as a factor each way: it follows no queue."""


def predict(deploy: Deploy, facts: Facts, choices: Choices) -> Prediction:
    """The prediction of one configuration. Every figure of `speed` is of all replicas together."""
    bill, cache = memory(facts, choices)
    request = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value)
    replicas, tail = choices.replicas.value, facts.calibration["tail_spread"]
    steps = [step(facts, choices, side) for side in ("value", "low", "high")]
    pages, left = layout(facts, choices), bill.kv_cache
    rooms = [_room(pages, room, request, choices) for room in (left.value, left.low, left.high)]
    tails = [tail.value, tail.high, tail.low]
    strains = [1.0, MODEL_ERROR, 1 / MODEL_ERROR]
    served = [_serve(deploy, *of, request, replicas) for of in zip(steps, rooms, tails, strains, strict=True)]
    basis = basis_of(facts)

    def seconds(name: str, queue: float = 1.0) -> Figure:
        return _figure([getattr(s, name) for s in served], "s", basis, queue)

    rate = _figure([s.requests_per_second * replicas for s in served], "1/s", basis)
    if deploy.workload.request_rate is not None and not served[0].over_capacity:
        rate = Figure(rate.value, min(rate.low, rate.value), rate.value, "1/s", basis)  # no more come than are sent
    output = request.output_tokens
    first, token = seconds("ttft_p50", 2.0), seconds("tpot_p50")
    late = _not_below(seconds("ttft_p95", 1.6), first)
    return Prediction(
        memory=bill,
        kv_cache_tokens=cache.tokens,
        usable_kv_cache_tokens=cache.usable,
        max_concurrency=cache.concurrency,
        kv_bytes_per_token=cache.bytes_per_token,
        speed=Speed(
            ttft_p50=first,
            ttft_p95=late,
            tpot_p50=token,
            tpot_p95=_not_below(seconds("tpot_p95"), token),
            e2e_p95=_not_below(seconds("e2e_p95"), late),
            requests_per_second=rate,
            tokens_per_second=Figure(rate.value * output, rate.low * output, rate.high * output, "1/s", basis),
        ),
        single_stream=single_stream(facts, choices, request, steps, basis),
        capacity=_figure(
            [capacity(deploy, s, r, request) * replicas for s, r in zip(steps, rooms, strict=True)], "1/s", basis
        ),
        bound_by=_bound(deploy, facts, choices, kv_room(pages, left.value, request), request, steps[0], served[0]),
        startup_seconds=startup(facts, choices, bill.weights.value),
        over_capacity=served[0].over_capacity,
        transferred_from=facts.calibration.measured_on,
    )


def basis_of(facts: Facts) -> Basis:
    """`transferred` from the H200 rows where bandwidth and peak are known, else `modelled`."""
    known = facts.smallest.bandwidth is not None and bool(facts.smallest.flops)
    return "transferred" if known else "modelled"


def mean_request(deploy: Deploy, *, prefix_caching: bool = True) -> Request:
    """The workload's request, in tokens. Without a spread the 95th percentile is the number itself."""
    asked, answer = deploy.workload.input_tokens, deploy.workload.output_tokens
    mean_in, long_in = (asked.mean, asked.p95) if isinstance(asked, Spread) else (asked, asked)
    mean_out, long_out = (answer.mean, answer.p95) if isinstance(answer, Spread) else (answer, answer)
    cached = min(deploy.workload.shared_prefix_tokens, mean_in - 1) if prefix_caching else 0
    return Request(mean_in, mean_in - cached, mean_out, long_in, long_out)


def single_stream(facts: Facts, choices: Choices, request: Request, steps: list[Step], basis: Basis) -> SingleStream:
    """One request alone: tokens/s, and what reading weights and KV at the card's full bandwidth would allow."""
    speeds = [1 / s.decode(1, request.context) for s in steps]
    read = bytes_for_one_token(facts, choices) + layout(facts, choices).read_bytes(request.context)
    bandwidth = facts.smallest.bandwidth
    if bandwidth is not None:
        limit = Figure(bandwidth.value / read, bandwidth.value / read, bandwidth.value / read, "1/s", "modelled")
    else:
        host = facts.calibration["cpu_bandwidth"]
        limit = Figure(host.value / read, host.low / read, host.high / read, "1/s", "modelled")
    reading = steps[0].weight_seconds + steps[0].expert_share * steps[0].expert_seconds
    bound: Bound = "memory-bandwidth" if reading * speeds[0] >= 0.5 else "cpu"
    return SingleStream(_figure(speeds, "1/s", basis), limit, bound)


def capacity(deploy: Deploy, of: Step, room: float, request: Request) -> float:
    """Most requests/s of one engine inside the SLA's latencies, in the steady state; without an SLA, at full room."""
    limits, running = deploy.sla, max(room, 1.0)
    best = 0.0
    count = running
    while count >= 1:
        served = load.closed(of, request, count, room, 1.0)
        steady = served.ttft_p50
        inside = (limits.tpot_p95 is None or served.tpot_p95 <= limits.tpot_p95) and (
            limits.ttft_p95 is None or steady <= limits.ttft_p95
        )
        whole = steady + request.long_output * served.tpot_p95
        if inside and (limits.e2e_p95 is None or whole <= limits.e2e_p95):
            best = max(best, served.requests_per_second)
        count = max(count / 1.15, 1.0) if count > 1 else 0
    return best


def _serve(
    deploy: Deploy, of: Step, room: float, tail: float, strain: float, request: Request, replicas: int
) -> Served:
    """One engine under its share of the load. `strain`: an engine so much slower than predicted feels so much more."""
    if deploy.workload.request_rate is not None:
        return load.opened(of, request, deploy.workload.request_rate * strain / replicas, room, tail)
    return load.closed(of, request, (deploy.workload.concurrency or 1) / replicas, room, tail)


def _room(pages: Layout, available: float, request: Request, choices: Choices) -> float:
    """Requests that one engine runs at once: by KV cache and by max_num_seqs; at least one, if only on paper."""
    return max(1.0, min(float(choices.max_num_seqs.value), kv_room(pages, available, request)))


def kv_room(pages: Layout, available: float, request: Request) -> float:
    """Mean requests whose KV fits at once beside the null block; a prefix that they share is held once."""
    shared = int(request.input_tokens - request.uncached_tokens) * pages.token_bytes
    free = (pages.blocks(available) - 1) * pages.block_bytes
    each = pages.request_bytes(math.ceil(request.tokens)) - shared
    return max(0.0, free - shared) / each if each > 0 else math.inf


def _bound(
    deploy: Deploy, facts: Facts, choices: Choices, room: float, request: Request, of: Step, served: Served
) -> Bound:
    """What would have to grow for this load to go faster."""
    if facts.smallest.name == "cpu":
        return "cpu"
    flight = deploy.workload.concurrency
    asked = float("inf") if served.over_capacity else flight / choices.replicas.value if flight else served.running
    if room < min(asked, choices.max_num_seqs.value):
        return "kv-capacity"
    running = served.running
    if of.host + running * of.host_per_sequence > of.decode(running, request.context) * 0.999:
        return "cpu"
    reading = of.weight_seconds + of.expert_seconds + running * of.kv_seconds(request.context)
    reading *= request.output_tokens
    computing = running * (load.prefill_seconds(of, request) + request.output_tokens * of.flop_seconds_per_token)
    return "compute" if computing > reading else "memory-bandwidth"


def _not_below(figure: Figure, part: Figure) -> Figure:
    """The band of what is never less than another figure: neither end lies under that one's."""
    low, high = max(figure.low, min(part.low, figure.value)), max(figure.high, part.high)
    return Figure(figure.value, low, high, figure.unit, figure.basis)


def _figure(values: list[float], unit: str, basis: Basis, queue: float = 1.0) -> Figure:
    """Value and band of the same quantity at the three sides; `queue` widens what waits, which is not followed."""
    error = MODEL_ERROR * queue
    return Figure(values[0], min(values) / error, max(values) * error, unit, basis)
