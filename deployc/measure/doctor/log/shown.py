"""Facts and figures as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deployc.measure.doctor.log.against import Compared
from deployc.measure.doctor.log.facts import Fact
from deployc.measure.doctor.log.reading import Reading
from deployc.types.figure import Figure
from deployc.units import show_count

NAMES = {
    "version": "vLLM", "engine": "engine", "model": "model", "dtype": "dtype", "quantization": "quantization",
    "max_model_len": "longest context", "tensor_parallel_size": "tensor parallel", "enforce_eager": "eager mode",
    "attention_backend": "attention", "kv_cache_tokens": "KV cache", "max_concurrency": "requests of full length",
    "gpu_blocks": "blocks", "kv_cache_gib": "left for the KV cache", "weights_gib": "weights", "load_s": "loaded in",
    "graph_s": "graphs captured in", "graphs_gib": "CUDA graphs", "init_s": "warmed up in", "free_gib": "free",
    "total_gib": "of the card", "wanted_gib": "wanted", "gpu_memory_utilization": "utilization",
    "kv_needed_gib": "one request of full length needs", "longest_context": "longest context that fits",
    "positions": "positions of the model",
}  # fmt: skip
"""How facts are called, in the order in which they are told."""


def shown_facts(reading: Reading) -> list[tuple[str, str]]:
    """Name and value of each, in the order of `NAMES`; flags stand in the JSON document."""
    known = {fact.name: fact for fact in reading.facts}
    return [(words, shown(known[name])) for name, words in NAMES.items() if name in known]


def shown_against(figures: Iterable[Compared]) -> list[tuple[str, str]]:
    """Name, and the log's figure beside the plan's."""
    return [
        (NAMES[one.name], f"{shown(one.read)}, predicted {band(one.predicted)}{'' if one.inside else ': outside'}")
        for one in figures
    ]


def shown(fact: Fact) -> str:
    """ "126,256 tokens", "61.66 GiB"."""
    if isinstance(fact.value, str):
        return {"True": "yes", "False": "no", "None": "none"}.get(fact.value, fact.value)
    number = show_count(fact.value) if fact.value == int(fact.value) else f"{fact.value:.2f}"
    return number if fact.unit in ("", "requests") else f"{number} {fact.unit}"


def band(figure: Figure) -> str:
    """ "60.1 GiB (58.0 to 61.2, measured)"."""
    one, low, high = (_rounded(end) for end in (figure.value, figure.low, figure.high))
    ends = f"{low} to {high}, " if low != high else ""
    return f"{one} {figure.unit} ({ends}{figure.basis})"


def _rounded(number: float) -> str:
    if not math.isfinite(number):
        return "unbounded"
    return f"{number:.3g}" if abs(number) < 1000 else show_count(float(f"{number:.4g}"))
