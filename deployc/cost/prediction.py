"""Memory and speed of the whole deployment, each figure with the band that the model's errors give it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from deployc.cost.bound import bound_by
from deployc.cost.capacity import Capacity, capacity, latencies
from deployc.cost.engine import Engine, engine
from deployc.cost.kv_cache import Layout, layout
from deployc.cost.memory import KvCache, memory
from deployc.cost.request import Request, at_rate, mean_request, run_of, slowest_at_start
from deployc.cost.simulate import Outcome, outcome, unbounded
from deployc.cost.single_stream import single_stream
from deployc.cost.speed_basis import SpeedBasis, speed_basis
from deployc.cost.startup import startup
from deployc.cost.steady import most_running, steady
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure
from deployc.types.prediction import Memory, Prediction, Speed

LATENCIES = ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p95")


def predict(deploy: Deploy, facts: Facts, choices: Choices) -> Prediction:
    """The prediction of one configuration. Every figure of `speed` is of all replicas together."""
    at, replicas = setting(deploy, facts, choices), choices.replicas.value
    one, left, basis = at.engine(at.bill.kv_cache.value), at.bill.kv_cache, at.basis
    ends, from_start = at.run(one, left.value)
    served = ends[0]
    ends += [at.run(at.engine(end), end)[0][0] for end in at.felt(served)]
    over, opened = math.isinf(served.ttft_p95), deploy.workload.request_rate is not None
    ends += at.relieved(one, left.value) if over else []
    errors = {name: basis.error(name) for name in latencies(deploy.sla)}
    most = capacity(one, deploy, at.request, at.room(left.value), replicas, served, errors)
    rates = [rate * replicas for rate in (most.requests_per_second, most.low, most.high)]
    return Prediction(
        memory=at.bill,
        kv_cache_tokens=at.cache.tokens,
        usable_kv_cache_tokens=at.cache.usable,
        max_concurrency=at.cache.concurrency,
        kv_bytes_per_token=at.cache.bytes_per_token,
        speed=_speed(at, ends),
        single_stream=single_stream(facts, choices, one, at.request, basis, basis.error("tpot_p50")),
        capacity=_around(rates[0], rates, basis, "requests_per_second"),
        capacity_in_flight=_at_once(most, replicas, basis),
        utilization=_share(served.busy, basis) if opened and not over else None,
        ttft_p95_from_start=from_start,
        bound_by="cpu"
        if facts.smallest.name == "cpu"
        else bound_by(one, at.request, served, opened=opened and not over),
        startup_seconds=startup(facts, choices, at.bill.weights.value),
        over_capacity=over,
        transferred_from=basis.said,
    )


def speed(at: Setting) -> Speed:
    """What the stated load sees, by one run; the band is the model's alone, without what memory may add to it."""
    left = at.bill.kv_cache.value
    return _speed(at, at.run(at.engine(left), left)[0])


def answers(at: Setting) -> Figure:
    """Requests/s of all replicas where as many run as can, however long they wait."""
    left = at.bill.kv_cache.value
    highest = at.highest(at.engine(left), left) * at.choices.replicas.value
    return _around(highest, [highest], at.basis, "requests_per_second")


@dataclass(frozen=True, slots=True)
class Setting:
    """A configuration with what follows from it before any load is followed."""

    deploy: Deploy
    facts: Facts
    choices: Choices
    bill: Memory
    cache: KvCache
    request: Request
    basis: SpeedBasis
    pages: Layout

    def engine(self, available: float) -> Engine:
        """One engine with so many bytes of KV cache on a card."""
        longest = math.ceil(self.request.long_input + self.request.long_output)
        return engine(self.facts, self.choices, self.basis, available, longest)

    def room(self, available: float) -> float:
        """Mean requests that those bytes hold."""
        return kv_room(self.pages, available, self.request)

    def highest(self, one: Engine, available: float) -> float:
        """Requests/s that one engine answers where as many run as can."""
        running = most_running(self.room(available), self.choices.max_num_seqs.value)
        return steady(one.step, self.request, running, one.limits.max_num_batched_tokens).requests_per_second

    def felt(self, served: Outcome) -> list[float]:
        """Ends of what is left for the KV cache that other figures follow from: in which fewer run than may and would.
        Of a load that comes by chance, as many as mean and four standard deviations of a Poisson count."""
        left, choices = self.bill.kv_cache, self.choices
        most = min(self.room(end) for end in (left.value, left.low, left.high))
        opened = self.deploy.workload.request_rate is not None and math.isfinite(served.ttft_p95)
        peak = served.running + 4 * math.sqrt(served.running) if opened else math.inf
        return [] if most >= min(choices.max_num_seqs.value, peak) else list({left.low, left.high} - {left.value})

    def run(self, one: Engine, available: float) -> tuple[list[Outcome], bool]:
        """One engine under its share of the load, and whether its slowest first tokens are those of the start.

        An open load above what the engine can do has no latency; one that may be above it, within the model's error,
        has a second outcome without.
        """
        replicas, rate = self.choices.replicas.value, self.deploy.workload.request_rate
        load = run_of(self.deploy, replicas)
        trace = one.trace(load)
        served = outcome(load, trace, one.constants.front)
        if rate is None:
            return [served], slowest_at_start(load, trace)
        each, highest = rate / replicas, self.highest(one, available)
        if each >= highest:
            return [unbounded(served, highest)], False
        kept = replace(served, requests_per_second=each)
        return [kept, unbounded(kept, each)] if each * self.error > highest else [kept], False

    def relieved(self, one: Engine, available: float) -> list[Outcome]:
        """Of a load above what the engine can do: the outcome if it can do as much more as the model may be off."""
        rate, highest = self.deploy.workload.request_rate or 0.0, self.highest(one, available)
        each = rate / self.choices.replicas.value / self.error
        if each >= highest:
            return []
        return [replace(one.serve(at_rate(self.deploy, each)), requests_per_second=highest)]

    @property
    def error(self) -> float:
        """Factor each way of the requests/s."""
        return self.basis.error("requests_per_second")


def setting(deploy: Deploy, facts: Facts, choices: Choices) -> Setting:
    """Memory, request and constants of a configuration."""
    bill, cache = memory(facts, choices)
    request = mean_request(deploy, prefix_caching=choices.enable_prefix_caching.value)
    return Setting(deploy, facts, choices, bill, cache, request, speed_basis(facts, choices), layout(facts, choices))


def kv_room(pages: Layout, available: float, request: Request) -> float:
    """Mean requests whose KV fits at once beside the null block; a prefix that they share is held once."""
    shared = int(request.input_tokens - request.uncached_tokens) * pages.token_bytes
    free = (pages.blocks(available) - 1) * pages.block_bytes
    each = pages.request_bytes(math.ceil(request.tokens)) - shared
    return max(0.0, free - shared) / each if each > 0 else math.inf


def _speed(at: Setting, ends: list[Outcome]) -> Speed:
    """The first of `ends` is the prediction; the others widen its band."""
    served, basis, replicas = ends[0], at.basis, at.choices.replicas.value
    of = {name: _around(getattr(served, name), [getattr(e, name) for e in ends], basis, name) for name in LATENCIES}
    of["ttft_p95"] = _not_below(of["ttft_p95"], of["ttft_p50"])
    of["tpot_p95"] = _not_below(of["tpot_p95"], of["tpot_p50"])
    of["e2e_p95"] = _not_below(of["e2e_p95"], of["ttft_p95"])
    rates = [end.requests_per_second * replicas for end in ends]
    rate = _around(rates[0], rates, basis, "requests_per_second")
    tokens = [end.tokens_per_second * replicas for end in ends]
    if at.deploy.workload.request_rate is not None:
        tokens = [each * at.request.output_tokens for each in rates]
        if not math.isinf(served.ttft_p95):
            rate = replace(rate, high=rate.value)  # no more come than are sent
    output = _around(tokens[0], tokens, basis, "tokens_per_second")
    if at.deploy.workload.request_rate is not None and not math.isinf(served.ttft_p95):
        output = replace(output, high=output.value)
    return Speed(requests_per_second=rate, tokens_per_second=output, **of)


def _around(value: float, ends: list[float], basis: SpeedBasis, quantity: str) -> Figure:
    """The band: the model's error each way, around all ends that the memory's own band leads to."""
    error, unit = basis.error(quantity), "1/s" if quantity.endswith("second") else "s"
    return Figure(value, min(ends) / error, max(ends) * error, unit, basis.basis)


def _at_once(most: Capacity, replicas: int, basis: SpeedBasis) -> Figure | None:
    """Requests in flight on all replicas at their capacity."""
    if most.in_flight is None:
        return None
    value, low, high = (count * replicas for count in most.in_flight)
    return Figure(value, low, high, "requests", basis.basis)


def _share(value: float, basis: SpeedBasis) -> Figure:
    """A share of the time, with the band of the throughput's error; never above one."""
    error = basis.error("requests_per_second")
    return Figure(value, value / error, max(value, min(1.0, value * error)), "share", basis.basis)


def _not_below(figure: Figure, part: Figure) -> Figure:
    """The band of what is never less than another figure: neither end lies under that one's."""
    low, high = max(figure.low, min(part.low, figure.value)), max(figure.high, part.high)
    return Figure(figure.value, low, high, figure.unit, figure.basis)
