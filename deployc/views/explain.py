"""What people ask, on a few lines: what is needed, how long, how many, on how small a card, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deployc.units import show_bytes, show_count
from deployc.views import words
from deployc.views.layout import pad, paint, wrap

MOMENTS = {
    "tower": "in the encoder",
    "compile": "filling the compile cache",
    "state": "in a layer that keeps a state",
    "context": "with a chunk of context expanded for latent attention",
    "batch": "in one layer on a full batch",
    "sampler": "in logits and sampler",
}
"""Moments of the profiling run, in words."""
ENDLESS = 2**30
"""Tokens above which a length is no limit."""
NAMES, NARROW = 18, 60
"""Columns of the names on the left; of a line below which they have none of their own."""
MANY = 2**29
"""Bytes from which CUDA graphs are worth a line."""
SHOWN = 2**20
"""Bytes below which a part is not worth a word."""
BUSY = 0.5
"""Share of a card's peak from which it cannot be idle: the best kernels reach some 0.8 of it."""
TERA = 1e12

Row = tuple[str, str]


def lines(document: Mapping[str, Any], color: bool, columns: int) -> list[str]:
    """The section, or nothing where nothing was explained."""
    answers = document["prediction"].get("explain")
    if not answers:
        return []
    heading = "NEEDED of one card" if _on_gpu(document) else "NEEDED"
    rows = [_needed(document, answers), *_most(document, answers), *_card(document, answers), *_parts(answers)]
    rows += [*_graphs(document, answers), *_arithmetic(answers)]
    return [paint(heading, "strong", color), *(line for row in rows for line in _row(row, columns))]


def _row(row: Row, columns: int) -> list[str]:
    name, text = row
    if columns < NARROW:
        return wrap(f"{name}: {text}", columns, "  ", "    ")
    return wrap(text, columns, f"  {pad(name, NAMES)}", " " * (2 + NAMES))


def _needed(document: Mapping[str, Any], answers: Mapping[str, Any]) -> Row:
    """Needed against reserved: why a small model "takes" the whole card."""
    flight = f"{words.requests(answers['in_flight']['value'])} in flight"
    mean, long = (_spread(document, answers[key]["value"]) for key in ("kv_cache_mean", "kv_cache_p95"))
    kv = f"the KV of {flight}, {long}" if mean == long else f"the KV of {flight}: {mean} at mean length, {long} at p95"
    if not _on_gpu(document):
        return "this load needs", kv
    needed, budget = answers["needed"], document["prediction"]["memory"]["budget"]["value"]
    if answers["needed_for"] == "max_model_len":
        kv += "; the engine starts only with room for one request of full length"
    if needed["high"] > budget:
        size = needed["value"] if needed["value"] > budget else needed["high"]
        most = "" if needed["value"] > budget else "up to "
        return "this load needs", f"{most}{show_bytes(size)} where {show_bytes(budget)} may be taken, with {kv}"
    size = f"at most {show_bytes(needed['high'])} (gpu_memory_utilization {answers['gpu_memory_utilization']:.2f})"
    return "this load needs", f"{size} of the {show_bytes(budget)} that vLLM reserves whatever comes, with {kv}"


def _spread(document: Mapping[str, Any], size: float) -> str:
    """Bytes of one card, and of all cards of an engine where there are several."""
    cards = document["hardware"]["tensor_parallel_size"]
    return f"{show_bytes(size)} ({show_bytes(size * cards)} on {cards} cards)" if cards > 1 else show_bytes(size)


def _most(document: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterator[Row]:
    prediction, length = document["prediction"], document["engine"]["args"].get("max-model-len")
    yield "longest request", _longest(answers["longest_context"])
    full, mean = prediction["max_concurrency"]["value"], answers["requests_mean"]["value"]
    if isinstance(length, int) and full is not None:
        of_mean = f", or {words.few(mean)} of mean length" if mean is not None else ""
        each = length * prediction["kv_bytes_per_token"]["value"]
        size = f" ({show_bytes(each)} of KV each)" if answers["tokens_are_capacity"] and each else ""
        yield "most at once", f"{words.requests(full)} of {show_count(length)} tokens{size}{of_mean}"
    if not answers["tokens_are_capacity"]:
        logged = show_count(prediction["kv_cache_tokens"]["value"])
        yield (
            "KV cache size",
            f"{logged} tokens, the engine will log: no capacity, as not every layer keeps every token",
        )


def _longest(longest: Mapping[str, Any]) -> str:
    own, fp8 = longest["by_memory"]["value"], longest["by_memory_fp8"]
    positions, scaled = f"{show_count(longest['by_positions'])} tokens", ""
    if longest["by_positions"] > longest.get("own_positions", longest["by_positions"]):
        scaled = f" with its own {show_count(longest['own_positions'])} positions scaled"
    if own >= ENDLESS:
        return f"{positions}, all that the model takes{scaled}; a longer one would need no more memory"
    more = f" ({show_count(fp8['value'])} with an fp8 KV cache)" if fp8 and fp8["value"] < ENDLESS else ""
    if own >= longest["by_positions"]:
        return f"{positions}, all that the model takes{scaled}; memory holds {show_count(own)}{more}"
    return f"{show_count(own)} tokens{more}; the model takes {positions}{scaled}"


def _card(document: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterator[Row]:
    card, hardware = answers["smallest_card"], document["hardware"]
    if not _on_gpu(document):
        return
    many = f"{hardware['tensor_parallel_size']} x " if hardware["tensor_parallel_size"] > 1 else ""
    if card is None:
        yield "smallest card", "none with a profile holds this load"
    elif card["name"] in hardware["gpus"]:
        yield "smallest card", f"this one: {many}{card['name']}"
    else:
        yield "smallest card", f"{many}{card['name']}, {show_bytes(card['memory'])} as CUDA shows it, holds this load"


def _parts(answers: Mapping[str, Any]) -> Iterator[Row]:
    """Why weights and activations are as large as they are."""
    parameters, *added = answers["weights"]
    more = [f"{show_bytes(part['bytes'])} of {part['name']}" for part in added if part["bytes"] >= SHOWN]
    yield "weights", "; loading adds ".join(filter(None, [_size(parameters, "of parameters"), ", ".join(more)]))
    if answers["activations"]:
        peak, *others = (_size(share, MOMENTS.get(share["name"], share["name"])) for share in answers["activations"])
        kept = answers["activations_kept"]
        beside = f" and {show_bytes(kept)} at all times" if kept >= SHOWN else ""
        yield "activation peak", "; ".join(filter(None, [peak + beside, ", ".join(others)]))


def _graphs(document: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterator[Row]:
    """Where they take much, or twice as much as people know."""
    graphs, size = answers["graphs"], document["prediction"]["memory"]["cuda_graphs"]["value"]
    if graphs is None or (size < MANY and not graphs["with_adapters"]):
        return
    twice = ", every batch size with and without adapters" if graphs["with_adapters"] else ""
    where = (
        "the engine takes its own estimate of them, which may be higher, from the budget"
        if graphs["in_budget"]
        else "outside the budget"
    )
    yield "CUDA graphs", f"{show_bytes(size)}: {graphs['captured']} are captured{twice}; {where}"


def _arithmetic(answers: Mapping[str, Any]) -> Iterator[Row]:
    """How much of the card's peak the prompts take: a load that takes much of it cannot leave the card idle."""
    of = answers.get("arithmetic")
    if not of:
        return
    share, peak, needed = of["needed"]["value"] / of["peak"], of["peak"] / TERA, of["needed"]["value"] / TERA
    rate, over = words.rate("requests")(of["requests_per_second"]["value"]), f" / {of['cards']} cards"
    yield (
        "arithmetic",
        f"prompts take {share:.0%} of a card's {peak:,.0f} TFLOP/s: {rate} x {show_count(of['tokens'])} tokens x 2 x "
        f"{of['weights'] / 1e9:.3g}e9 weights{over if of['cards'] > 1 else ''} are {needed:.3g}"
        + (", unless they are shorter or hit the prefix cache" if share > BUSY else ""),
    )


def _size(share: Mapping[str, Any], words_: str) -> str:
    return f"{show_bytes(share['bytes'])} {words_}"


def _on_gpu(document: Mapping[str, Any]) -> bool:
    return bool(document["hardware"]["gpus"] != ["cpu"])
