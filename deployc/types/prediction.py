"""What the cost model predicts, in the shape of the plan document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployc.types.figure import Figure

Bound = Literal["memory-bandwidth", "compute", "kv-capacity", "cpu", "load"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest card. `kv_cache` is what is left of `budget`; it may be negative: then nothing starts."""

    total: Figure
    budget: Figure
    weights: Figure
    activations: Figure
    cuda_graphs: Figure
    non_torch: Figure
    adapters: Figure
    kv_cache: Figure


@dataclass(frozen=True, slots=True)
class Speed:
    """Of the whole deployment under the stated workload: seconds and 1/s."""

    ttft_p50: Figure
    ttft_p95: Figure
    tpot_p50: Figure
    tpot_p95: Figure
    e2e_p95: Figure
    requests_per_second: Figure
    tokens_per_second: Figure


@dataclass(frozen=True, slots=True)
class SingleStream:
    """One request alone on one engine, tokens/s; `physical_limit` is weights + KV read at the full bandwidth."""

    tokens_per_second: Figure
    physical_limit: Figure
    bound_by: Bound  # "cpu" where launches and the host's work take longer than reading the weights


@dataclass(frozen=True, slots=True)
class Prediction:
    """`kv_cache_tokens` and `max_concurrency` are of one engine; the rest of the deployment."""

    memory: Memory
    kv_cache_tokens: Figure  # as the engine logs it
    usable_kv_cache_tokens: Figure
    max_concurrency: Figure  # requests of max_model_len at once
    kv_bytes_per_token: Figure  # per engine, all cards of it together
    speed: Speed
    single_stream: SingleStream
    capacity: Figure  # requests/s inside the SLA's latencies
    bound_by: Bound
    startup_seconds: Figure
    over_capacity: bool = False  # the stated open-loop rate is above capacity: the queue grows without bound
    capacity_in_flight: Figure | None = None  # requests at once at that rate; None under an open load
    utilization: Figure | None = None  # of an open load: share of the time in which an engine is in a step
    ttft_p95_from_start: bool = False  # of a closed load: the slowest come at the start, when all are sent at once
    warnings: tuple[str, ...] = ()
    transferred_from: str = ""  # where the constants of `transferred` figures were measured


@dataclass(frozen=True, slots=True)
class Growth:
    """The cheapest change that raises the capacity, in words, and the capacity under it, requests/s."""

    change: str
    capacity: Figure


Verdict = Literal["meets", "tight", "misses"]


@dataclass(frozen=True, slots=True)
class SlaLine:
    """One limit of `sla:` beside its prediction."""

    name: str
    limit: Figure
    predicted: Figure
    verdict: Verdict
    at: str
