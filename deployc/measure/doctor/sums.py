"""Figures that cannot all be true, whatever the model and the card: sums on what was said alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deployc import units
from deployc.diagnostics import Diagnostic, error, warning
from deployc.measure.doctor.description import Described


def no_more_than_all_the_time(described: Described) -> Iterator[Diagnostic]:
    """NVML's utilization is the share of time in which a kernel ran."""
    for key, most in (("gpu_utilization", 1.0), ("prefix_cache_hits", 1.0)):
        value = getattr(described.values, key)
        if value is not None and value > most:
            what = (
                "NVML counts the share of time in which any kernel ran on a card: never more than 100%"
                if key == "gpu_utilization"
                else "hits are a share of the tokens looked up"
            )
            yield error(
                "DC740",
                "a share is above 100%",
                f"{key} is {value:.0%}; {what}. It may be a sum over cards, or a relative change read as a level.",
                "read it again, of one card: nvidia-smi --query-gpu=utilization.gpu --format=csv -l 1",
                described.at(key),
            )


def rates_agree(described: Described) -> Iterator[Diagnostic]:
    """Tokens/s are requests/s x tokens an answer."""
    said = described.values
    if said.requests_per_second is None or said.tokens_per_second is None or said.output_tokens is None:
        return
    mean = said.tokens_per_second / said.requests_per_second
    if abs(mean - said.output_tokens) <= 0.25 * said.output_tokens:
        return
    yield warning(
        "DC747",
        "tokens/s, requests/s and the length of answers do not agree",
        f"{said.tokens_per_second:g} tokens/s in {said.requests_per_second:g} requests/s are {units.show_count(mean)} "
        f"tokens an answer, not {units.show_count(said.output_tokens)}.",
        "give the mean length of the answers that were counted; a limit (max_tokens) is no length",
        described.at("tokens_per_second"),
    )


def in_flight_by_littles_law(described: Described) -> Iterator[Diagnostic]:
    """Requests at once = requests/s x seconds of each: no client sends more than it has in flight."""
    said = described.values
    if said.requests_per_second is None or said.latency is None or said.concurrency is None:
        return
    at_once = said.requests_per_second * said.latency
    if at_once <= said.concurrency * (1 + 0.2):
        return
    yield error(
        "DC748",
        "more requests are answered than are in flight",
        f"{said.requests_per_second:g} requests/s of {units.show_seconds(said.latency)} each are "
        f"{units.show_count(at_once)} at once; {said.concurrency} are said to be in flight.",
        "take rate, latency and concurrency from one run, and the mean latency, not a percentile",
        described.at("concurrency"),
    )


SUMS: tuple[Callable[[Described], Iterator[Diagnostic]], ...] = (
    no_more_than_all_the_time,
    rates_agree,
    in_flight_by_littles_law,
)
