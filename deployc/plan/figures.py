"""Figures of the plan document: `{value, low, high, basis}`; whole bytes and tokens, else six significant digits."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

from deployc.cost.money import per_million_tokens
from deployc.types.explanation import Arithmetic, Explanation, Share
from deployc.types.figure import Figure
from deployc.types.prediction import Growth, Memory, Prediction, SlaLine, Speed

WHOLE = ("B", "tokens")


def figure(of: Figure) -> dict[str, Any]:
    """A figure as JSON; null stands for "without bound", which JSON has no number for."""
    return {
        "value": _number(of.value, of.unit),
        "low": _number(of.low, of.unit),
        "high": _number(of.high, of.unit),
        "basis": of.basis,
    }


def prediction(
    of: Prediction, explained: Explanation | None = None, grown: Growth | None = None, hourly: float | None = None
) -> dict[str, Any]:
    """`prediction` of the document: bytes, seconds, 1/s. `hourly`: what all cards cost, where the file says so."""
    return {
        "memory": _all(of.memory),
        "kv_cache_tokens": figure(of.kv_cache_tokens),
        "usable_kv_cache_tokens": figure(of.usable_kv_cache_tokens),
        "kv_bytes_per_token": figure(of.kv_bytes_per_token),
        "max_concurrency": figure(of.max_concurrency),
        "speed": _all(of.speed),
        "single_stream": {
            "tokens_per_second": figure(of.single_stream.tokens_per_second),
            "physical_limit": figure(of.single_stream.physical_limit),
            "bound_by": of.single_stream.bound_by,
        },
        "capacity": capacity(of, grown),
        "cost": cost(of, hourly) if hourly else None,
        "bound_by": of.bound_by,
        "utilization": figure(of.utilization) if of.utilization else None,
        "ttft_p95_from_start": of.ttft_p95_from_start,
        "over_capacity": of.over_capacity,
        "startup_seconds": figure(of.startup_seconds),
        "transferred_from": of.transferred_from,
        "warnings": list(of.warnings),
        "explain": explanation(explained) if explained else None,
    }


def capacity(of: Prediction, grown: Growth | None) -> dict[str, Any]:
    """What is served inside the SLA's latencies, and the cheapest change that gives more."""
    more = {"change": grown.change, "requests_per_second": figure(grown.capacity)} if grown else None
    flight = figure(of.capacity_in_flight) if of.capacity_in_flight else None
    return {"requests_per_second": figure(of.capacity), "in_flight": flight, "next": more}


def cost(of: Prediction, hourly: float) -> dict[str, Any]:
    """Of a million output tokens, in the money of `hardware.price`."""
    each, load = of.speed.tokens_per_second, of.speed.requests_per_second
    tokens = each.value / load.value if load.value else 0.0
    full = Figure(of.capacity.value * tokens, of.capacity.low * tokens, of.capacity.high * tokens, "1/s",
                  of.capacity.basis)  # fmt: skip
    return {
        "per_million_output_tokens": figure(per_million_tokens(hourly, each)),
        "per_million_output_tokens_at_capacity": figure(per_million_tokens(hourly, full)),
    }


def explanation(of: Explanation) -> dict[str, Any]:
    """`prediction.explain`: what people ask about memory."""
    card = {"name": of.smallest_card, "memory": round(of.smallest_card_memory)} if of.smallest_card else None
    return {
        "in_flight": figure(of.in_flight),
        "kv_cache_mean": figure(of.kv_cache_mean),
        "kv_cache_p95": figure(of.kv_cache_p95),
        "needed": figure(of.needed),
        "needed_for": of.needed_for,
        "gpu_memory_utilization": of.gpu_memory_utilization,
        "longest_context": {
            "by_memory": figure(of.longest),
            "by_memory_fp8": figure(of.longest_fp8) if of.longest_fp8 else None,
            "by_positions": of.positions,
            "own_positions": of.own_positions,
        },
        "requests_mean": figure(of.requests_mean),
        "tokens_are_capacity": of.tokens_are_capacity,
        "smallest_card": card,
        "weights": [_share(share) for share in of.weights],
        "activations": [_share(share) for share in of.activations],
        "activations_kept": round(of.activations_kept),
        "graphs": asdict(of.graphs) if of.graphs else None,
        "arithmetic": _arithmetic(of.arithmetic) if of.arithmetic else None,
    }


def _arithmetic(of: Arithmetic) -> dict[str, Any]:
    return {
        "requests_per_second": figure(of.rate),
        "tokens": float(f"{of.tokens:.6g}"),
        "weights": round(of.weights),
        "cards": of.cards,
        "needed": figure(of.needed),
        "peak": round(of.peak),
    }


def _share(of: Share) -> dict[str, Any]:
    return {"name": of.name, "bytes": round(of.bytes)}


def sla_line(of: SlaLine) -> dict[str, Any]:
    """One limit of `sla` beside what is predicted; the limit is the user's own number, in s or 1/s."""
    return {
        "name": of.name,
        "limit": _number(of.limit.value, of.limit.unit),
        "predicted": figure(of.predicted),
        "verdict": of.verdict,
        "at": of.at,
    }


def _all(of: Memory | Speed) -> dict[str, Any]:
    return {field.name: figure(getattr(of, field.name)) for field in fields(of)}


def _number(value: float, unit: str) -> float | int | None:
    if not math.isfinite(value):
        return None
    return round(value) if unit in WHOLE else float(f"{value:.6g}")
