"""One request alone on one engine: its speed, and what reading weights and KV at the full bandwidth would allow."""

from __future__ import annotations

from deployc.cost.engine import Engine
from deployc.cost.kv_cache import layout
from deployc.cost.request import Request
from deployc.cost.speed_basis import SpeedBasis
from deployc.cost.step import Work
from deployc.cost.weights import loaded, streamed_bytes
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure
from deployc.types.prediction import Bound, SingleStream


def single_stream(
    facts: Facts, choices: Choices, one: Engine, request: Request, basis: SpeedBasis, error: float
) -> SingleStream:
    """Tokens/s of one request; `error` is the factor each way of its band."""
    work = Work(1, request.context)
    speed = 1 / one.step.seconds(work)
    read = bytes_for_one_token(facts, choices) + layout(facts, choices).read_bytes(request.context)
    known = facts.smallest.bandwidth
    host = facts.calibration["cpu_bandwidth"]
    if known is not None:
        limit = Figure(known.value / read, known.value / read, known.value / read, "1/s", "modelled")
    else:
        limit = Figure(host.value / read, host.low / read, host.high / read, "1/s", "modelled")
    time = one.step.time(work)
    waits = time.host > time.gpu
    reading = read / basis.peaks.bandwidth
    bound: Bound = "cpu" if waits or reading * speed < 0.5 else "memory-bandwidth"
    return SingleStream(Figure(speed, speed / error, speed * error, "1/s", basis.basis), limit, bound)


def bytes_for_one_token(facts: Facts, choices: Choices) -> float:
    """Weights that a rank reads for a token of one sequence alone: of routed experts those it is sent to."""
    model, routed = facts.model.architecture, _routed_share(facts)
    touched = model.experts_per_token / model.experts if model.experts else 1.0
    return streamed_bytes(facts, choices) * (1 - routed + routed * touched)


def _routed_share(facts: Facts) -> float:
    """Share of the parameters that lies in routed experts."""
    if not facts.model.architecture.experts:
        return 0.0
    weights = [(facts.model.weights_in(tensor), ".experts." in tensor.pattern) for tensor in loaded(facts)]
    return sum(count for count, routed in weights if routed) / sum(count for count, _ in weights)
