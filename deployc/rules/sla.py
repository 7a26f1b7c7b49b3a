"""The limits of `sla:` beside the prediction: meets, tight (the limit lies inside the band), misses."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from deployc import units
from deployc.cost.capability import INT8_BEFORE, INT8_SINCE
from deployc.diagnostics import Diagnostic, Severity, error, warning
from deployc.rules.case import Case
from deployc.spec.deploy import Deploy
from deployc.types.figure import Figure, exact
from deployc.types.prediction import Prediction, SlaLine, Verdict

UPPER = ("ttft_p95", "tpot_p95", "e2e_p95")
LOWER = ("requests_per_second", "tokens_per_second")
CODES = {
    "ttft_p95": ("DC401", "the time to first token may pass its limit"),
    "tpot_p95": ("DC402", "the time per output token may pass its limit"),
    "e2e_p95": ("DC403", "the whole request may take longer than its limit"),
    "requests_per_second": ("DC404", "the throughput may stay under its limit"),
    "tokens_per_second": ("DC405", "the token throughput may stay under its limit"),
}


def lines(deploy: Deploy, prediction: Prediction) -> tuple[SlaLine, ...]:
    """One line a limit that the file states, in the file's own names."""
    found = []
    for name in (*UPPER, *LOWER, "full_length_requests"):
        limit = getattr(deploy.sla, name)
        if limit is None:
            continue
        predicted = prediction.max_concurrency if name == "full_length_requests" else getattr(prediction.speed, name)
        at = deploy.at(f"sla.{name}")
        bound = exact(float(limit), predicted.unit)
        found.append(SlaLine(name, bound, predicted, _verdict(name, limit, predicted), str(at or "")))
    return tuple(found)


def limits(case: Case) -> Iterator[Diagnostic]:
    """An error where the whole band lies on the wrong side, a warning where the limit lies inside it."""
    for line in lines(case.deploy, case.prediction):
        if line.verdict == "meets" or line.name == "full_length_requests":  # judged with the memory
            continue
        shown = _seconds if line.name in UPPER else _rate
        predicted = line.predicted
        detail = (
            f"{line.name} is predicted at {shown(predicted.value)} ({shown(predicted.low)} to {shown(predicted.high)}, "
            f"{predicted.basis}); the limit is {shown(line.limit.value)}."
        )
        floor = 1 / case.prediction.single_stream.physical_limit.high
        if line.name == "tpot_p95" and line.limit.value < floor:
            detail += f" Reading weights and KV for one token takes {shown(floor)} at the card's full bandwidth."
        at, fix = case.deploy.at(f"sla.{line.name}"), _fix(case, line.name)
        severity = Severity.ERROR if line.verdict == "misses" else Severity.WARNING
        code, summary = CODES[line.name]
        yield Diagnostic(code, severity, summary, detail, fix, at, predicted.basis)


def over_capacity(case: Case) -> Iterator[Diagnostic]:
    """An open load above what the engines can do has no latency: the queue grows for ever."""
    rate, capacity = case.deploy.workload.request_rate, case.prediction.speed.requests_per_second
    if rate is None or (capacity.high >= rate and not case.prediction.over_capacity):
        return
    detail = (
        f"{rate:g} requests/s are sent; {capacity.value:.2g} ({capacity.low:.2g} to {capacity.high:.2g}, "
        f"{capacity.basis}) can be served. The queue grows without bound."
    )
    at, fix = case.deploy.at("workload.request_rate"), "add cards or replicas, shorten prompts, or lower the rate"
    said = error if capacity.high < rate else warning
    yield said("DC410", "the load is above capacity", detail, fix, at, capacity.basis)


def _verdict(name: str, limit: float, predicted: Figure) -> Verdict:
    if name in UPPER:
        return "meets" if predicted.high <= limit else "misses" if predicted.low > limit else "tight"
    return "meets" if predicted.low >= limit else "misses" if predicted.high < limit else "tight"


def _fix(case: Case, name: str) -> str:
    bound = case.prediction.bound_by
    if name == "tpot_p95" or bound == "memory-bandwidth":
        capability = case.facts.smallest.compute_capability
        possible = capability is None or INT8_SINCE <= capability < INT8_BEFORE
        int8 = "quantization.weights: int8 (half the bytes a step), "
        smaller = int8 if possible and case.choices.weights.value == "none" else ""
        return f"{smaller}fewer requests in flight, or a card with more bandwidth"
    if bound == "kv-capacity":
        return "quantization.kv_cache: fp8, a higher max_num_seqs, or more cards"
    return "shorter prompts, a shared prefix, more replicas, or a faster card"


def _seconds(value: float) -> str:
    return units.show_seconds(value) if isfinite(value) else "unbounded"


def _rate(value: float) -> str:
    return f"{units.show_count(value)}/s"
