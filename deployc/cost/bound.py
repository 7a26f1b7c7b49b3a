"""What would have to grow for a load to go faster."""

from __future__ import annotations

from deployc.cost.engine import Engine
from deployc.cost.request import Request
from deployc.cost.simulate import Outcome
from deployc.cost.step import Work, columns
from deployc.types.prediction import Bound

WAITS = 0.05
"""Share of the time in which requests wait for blocks of the cache, above which the cache is what bounds."""
IDLE = 0.9
"""Share of the time in steps under which an open load is what bounds: the engine waits for requests."""


def bound_by(one: Engine, request: Request, served: Outcome, *, opened: bool) -> Bound:
    """Of one engine under its load: the cache where requests wait for it, else what its steps spend their time on."""
    if served.short_of_memory > WAITS:
        return "kv-capacity"
    if opened and served.busy < IDLE:
        return "load"
    shape = one.step.shape
    running = max(1, round(served.running))
    tokens = round(running * request.uncached_tokens / max(1.0, request.output_tokens))  # of prompts, a step
    plain = Work(running, running * request.context)
    area = tokens * (request.input_tokens - request.uncached_tokens / 2)
    mixed = plain._replace(prompts=1, tokens=tokens, area=area, finished=1, begun=1) if tokens else plain
    step = columns(shape, mixed)
    time = one.step.time(plain)
    if time.host > time.gpu:
        return "cpu"
    reading = shape.rest + sum(p.bytes for p in shape.products) + shape.head[0] * shape.head[1] * shape.element
    reading += step.kv_bytes + step.kv_bytes_mixed
    if shape.experts is not None:
        reading += shape.experts.bytes * step.touched / shape.experts.count
    operations = (
        2 * step.rows * sum(p.weights for p in shape.products) / shape.kernel_peak + step.attention / shape.peak
    )
    if shape.experts is not None:
        each = shape.experts.weights * shape.experts.layers * shape.experts.per_token
        operations += 2 * step.rows * each / shape.kernel_peak
    return "compute" if operations > reading / shape.bandwidth else "memory-bandwidth"
