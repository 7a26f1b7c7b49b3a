"""What users of a simulated run saw: TTFT, TPOT, end to end, and how much came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from deployc.cost.simulate.load import Load
from deployc.cost.simulate.trace import Trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds and 1/s of one engine over a whole run."""

    ttft_p50: float
    ttft_p95: float
    ttft_p99: float
    tpot_p50: float
    tpot_p95: float
    tpot_p99: float
    e2e_p50: float
    e2e_p95: float
    e2e_p99: float
    requests_per_second: float
    tokens_per_second: float
    running: float  # sequences decoding, mean over the time in steps
    busy: float  # share of the time in steps
    step: float  # mean seconds of one
    preempted: int
    short_of_memory: float  # share of the time in which requests waited for blocks of the KV cache
    short_of_slots: float  # … for a place among max_num_seqs


def outcome(load: Load, trace: Trace, front: float) -> Outcome:
    """`front`: seconds from the end of a step to its tokens' being seen by the client."""
    first = sorted(f - s + front for f, s in zip(trace.first, trace.sent, strict=True))
    whole = sorted(d - s + front for d, s in zip(trace.done, trace.sent, strict=True))
    apart = zip(trace.first, trace.done, load.outputs, strict=True)
    token = sorted((d - f) / (tokens - 1) for f, d, tokens in apart if tokens > 1) or [0.0]
    wall = max(trace.done) + front
    return Outcome(
        ttft_p50=percentile(first, 0.5),
        ttft_p95=percentile(first, 0.95),
        ttft_p99=percentile(first, 0.99),
        tpot_p50=percentile(token, 0.5),
        tpot_p95=percentile(token, 0.95),
        tpot_p99=percentile(token, 0.99),
        e2e_p50=percentile(whole, 0.5),
        e2e_p95=percentile(whole, 0.95),
        e2e_p99=percentile(whole, 0.99),
        requests_per_second=load.requests / wall,
        tokens_per_second=sum(load.outputs) / wall,
        running=trace.running / trace.busy,
        busy=trace.busy / wall,
        step=trace.busy / trace.steps,
        preempted=trace.preempted,
        short_of_memory=trace.short_of_memory / wall,
        short_of_slots=trace.short_of_slots / wall,
    )


def unbounded(of: Outcome, most: float) -> Outcome:
    """A load above capacity: its queue grows for ever, and `most` requests a second are answered."""
    return replace(
        of,
        ttft_p50=inf,
        ttft_p95=inf,
        ttft_p99=inf,
        e2e_p50=inf,
        e2e_p95=inf,
        e2e_p99=inf,
        requests_per_second=most,
        tokens_per_second=of.tokens_per_second / of.requests_per_second * most,
    )


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie: the next one up, never one in between."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]
