"""Figures and terms of the plan document in words: a value with its unit, its band, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deployc.units import show_bytes, show_count, show_seconds

Show = Callable[[float], str]

BASIS = {
    "exact": "follows from tensor shapes",
    "measured": "measured on this GPU and engine version",
    "transferred": "measured on {from}, carried over to this card by its own figures, widened",
    "modelled": "from specifications only",
}
BOUND = {
    "memory-bandwidth": "memory bandwidth: each step reads all weights and the KV of its requests",
    "compute": "compute: the arithmetic of the prompts fills the cards",
    "kv-capacity": "room for KV cache: requests wait until others leave it",
    "cpu": "the host's CPU, which has work for every step",
    "load": "the load alone: the engine waits for requests",
}
CARD_CLASSES = (8, 10, 12, 16, 20, 24, 32, 40, 48, 80, 94, 96, 141, 180, 192, 288)
"""Sizes in GB that cards are sold as; CUDA shows a few per cent less."""
ALONE = {
    "memory-bandwidth": "memory bandwidth",
    "cpu": "the host: launches and scheduling take longer than reading the weights",
}
BAND_DASH = "–"


def value(figure: Mapping[str, Any], show: Show) -> str:
    """The value alone; "unbounded" where a queue grows for ever."""
    return "unbounded" if figure["value"] is None else show(figure["value"])


def band(figure: Mapping[str, Any], show: Show) -> str:
    """ "5.08 – 6.20 GiB", each end with its unit where the two differ; "" where both ends are the same."""
    if figure["low"] == figure["high"] and (figure["basis"] == "exact" or figure["low"] is None):
        return ""
    low, high = ("unbounded" if end is None else show(end) for end in (figure["low"], figure["high"]))
    unit = _unit(high)
    return f"{low.removesuffix(unit) if unit == _unit(low) else low} {BAND_DASH} {high}"


def with_band(figure: Mapping[str, Any], show: Show) -> str:
    """ "58 tokens/s (46.4 – 69.6, modelled)"."""
    shown, between = value(figure, show), band(figure, show)
    low = between.partition(f" {BAND_DASH} ")[0]
    if not _unit(low):
        between = between.removesuffix(_unit(shown))
    return f"{shown} ({between}, {figure['basis']})" if between else f"{shown} ({figure['basis']})"


def bases(figures: Iterable[Mapping[str, Any]], transferred_from: str) -> str:
    """The bases that occur, each explained, the most trusted first; of transferred ones where they were measured."""
    met = {figure["basis"] for figure in figures}
    explained = (f"{basis} = {meaning}" for basis, meaning in BASIS.items() if basis in met)
    return "; ".join(explained).replace("{from}", transferred_from or "another card")


def _unit(shown: str) -> str:
    """ " GiB" of "5.08 GiB", "/s" of "4.90/s"; "" of a bare number and of "2 min 5 s"."""
    return (
        "/s" if shown.endswith("/s") and " " not in shown else shown[shown.find(" ") :] if shown.count(" ") == 1 else ""
    )


def rate(what: str) -> Show:
    """How to show so many of something a second."""
    return lambda number: f"{show_count(float(f'{number:.3g}'))} {what}/s"


def per_second(number: float) -> str:
    """ "4.90/s", where the row's name says of what."""
    return f"{show_count(float(f'{number:.3g}'))}/s"


def share(number: float) -> str:
    """ "97 %"."""
    return f"{number * 100:.0f} %"


def money(number: float) -> str:
    """ "0.41", "12.3": three significant digits, in whatever money the file states a price."""
    return f"{number:.3g}" if number < 1000 else show_count(number)


def few(number: float) -> str:
    """A count that need not be whole, to two significant digits: "3.2", "120"."""
    return show_count(number) if number >= 10 else f"{number:.2g}"


def requests(number: float) -> str:
    """ "3.2 requests", "1 request"."""
    shown = few(number)
    return f"{shown} request{'' if shown == '1' else 's'}"


def card_class(memory: float) -> str:
    """ "24 GB" for the 23.5 GiB that CUDA shows of such a card: the smallest size sold that holds it."""
    held = next((size for size in CARD_CLASSES if size * 2**30 >= memory), None)
    return f"{held} GB" if held else show_bytes(memory)


def counted(number: int, what: str) -> str:
    """ "1 card", "4 cards"."""
    return f"{show_count(number)} {what}{'' if number == 1 else 's'}"


def parameters(number: float) -> str:
    """ "7.62 billion parameters"."""
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {name} parameters"
    return f"{show_count(number)} parameters"


def load(workload: Mapping[str, Any]) -> str:
    """ "32 requests at once, 1,500 tokens in, 256 out"."""
    rate_of = workload.get("request_rate")
    asked = f"{show_count(rate_of)} requests/s" if rate_of else f"{counted(workload['concurrency'], 'request')} at once"
    lengths = [_length(workload[key]) for key in ("input_tokens", "output_tokens")]
    return f"{asked}, {lengths[0]} tokens in, {lengths[1]} out"


def _length(tokens_of: int | Mapping[str, int]) -> str:
    if isinstance(tokens_of, Mapping):
        return f"{show_count(tokens_of['mean'])} (p95 {show_count(tokens_of['p95'])})"
    return show_count(tokens_of)


FIGURES: dict[str, tuple[str, Show]] = {
    "ttft_p50": ("time to first token, p50", show_seconds),
    "ttft_p95": ("time to first token, p95", show_seconds),
    "tpot_p50": ("time per output token, p50", show_seconds),
    "tpot_p95": ("time per output token, p95", show_seconds),
    "e2e_p95": ("whole request, p95", show_seconds),
    "requests_per_second": ("requests answered", per_second),
    "tokens_per_second": ("output tokens", per_second),
    "full_length_requests": ("full-length requests at once", few),
}
"""Names of speed and SLA figures in words, and how each is shown."""
