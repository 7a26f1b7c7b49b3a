"""Weights in few bits that save memory and no time, or cost some: by format, card and load."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deployc.cost.capability import eight_bit, multiplies, runs, words
from deployc.cost.weights.packed import stored
from deployc.diagnostics import Diagnostic, note, warning
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.rules.case import Case
from deployc.rules.stored_as import eight_bits, method_of, on_this_card, weights_at

_SMALL = 8
"""Requests at once from which on bitsandbytes' 8-bit product is no slower than 16 bit (vllm pull request 44684)."""


def bitsandbytes_is_slow(case: Case) -> Iterator[Diagnostic]:
    """8 bits: no CUDA graphs (vllm/config/model.py, _verify_bnb_config), and weights unpacked before every product."""
    said = case.facts.model.quantization
    if case.on_cpu or method_of(case) != "bitsandbytes" or not said.get("load_in_8bit"):
        return
    few = 0 < _in_flight(case) < _SMALL
    small = f" With {_in_flight(case)} in flight that was 4 times slower than 16 bit on an L4." if few else ""
    eight = eight_bit(case.facts)
    yield warning(
        "DC584",
        "bitsandbytes weights of 8 bits are slow",
        "They are unpacked before every product, and the engine turns CUDA graphs off for them." + small,
        f"name the 16-bit model{guess(case.facts.model.source)} with quantization.weights: {eight or 'none'}; or take "
        "a checkpoint in AWQ or GPTQ",
        case.deploy.at("model.source"),
    )


def widened_and_bound_by_compute(case: Case) -> Iterator[Diagnostic]:
    """Weights alone in few bits are multiplied in 16: where products are the limit, nothing is won."""
    if case.on_cpu or case.prediction.bound_by != "compute" or not (what := _weights_alone(case)):
        return
    yield warning(
        "DC585",
        "weights in few bits do not raise this throughput",
        f"{what} are widened to 16 bit before they are multiplied. The stated load is limited by products, not by "
        "reading weights: they save memory here, and the time of a lone request, but no throughput.",
        _multiplied(case),
        weights_at(case),
    )


def fp8_checkpoint_is_widened(case: Case) -> Iterator[Diagnostic]:
    """fp8 as the source has it, on a card without units for it."""
    found = runs(case.facts, "fp8")
    if case.on_cpu or case.choices.weights.value != "checkpoint" or eight_bits(case) != "fp8":
        return
    if found is None or found.how == "native":
        return
    capability = case.facts.smallest.compute_capability or (0, 0)
    yield warning(
        "DC258",
        "fp8 weights are not multiplied in fp8 on this card",
        f"{case.facts.model.source} holds fp8 weights; {case.card} has compute capability {words(capability)}, without "
        f"fp8 arithmetic. vLLM widens them in the kernel ({found.kernel}) and multiplies in 16 bit. Memory is saved "
        "and decode is faster; prompts are not.",
        on_this_card(case),
        weights_at(case),
    )


def int8_path(case: Case) -> Iterator[Diagnostic]:
    """Which of the two int8 runs: products of 8-bit integers, or weights alone, widened."""
    weights, native = case.choices.weights.value, multiplies(case.facts, "int8")
    asked = case.deploy.written("quantization.weights") or weights == "checkpoint"
    eight, capability = eight_bits(case), case.facts.smallest.compute_capability
    if case.on_cpu or not asked or capability is None:
        return
    card = f"{case.card} (compute capability {words(capability)})"
    if eight == "int8" and native:
        yield note(
            "DC586",
            "which int8 runs",
            f"Weights and activations are 8-bit integers, and {card} multiplies them as such: prompts and large "
            "batches are faster too, not memory alone smaller.",
            "",
            weights_at(case),
        )
    elif eight == "int8-weight-only" and method_of(case) != "bitsandbytes":  # which says more of itself
        yield warning(
            "DC586",
            "which int8 runs",
            f"The weights alone are 8-bit integers: on {card} they are widened to 16 bit in the kernel. Memory is "
            "halved and decode is faster; prompts are not.",
            _multiplied(case),
            weights_at(case),
        )


def int8_in_small_batches(case: Case) -> Iterator[Diagnostic]:
    """Sizes of batches for which the int8 product of a generation of cards is not tuned."""
    for major, minor, first, last in case.facts.lore.formats.untuned_int8:
        batch = min(_in_flight(case), case.choices.max_num_seqs.value)
        if case.facts.smallest.compute_capability != (major, minor) or not first <= batch <= last:
            continue
        if eight_bits(case) == "int8":
            yield note(
                "DC587",
                "int8 is not tuned for batches of this size on this card",
                f"{batch} requests at once are a batch of {first} to {last} rows, for which the int8 product on "
                f"compute capability {major}.{minor} takes tiles that are too large: a call takes 1.3 to 2 times as "
                "long as just below.",
                "set quantization.weights: fp8, whose product has no such step here",
                weights_at(case),
            )


def _multiplied(case: Case) -> str:
    """The weights whose products win: in the card's own 8 bits, else in 16."""
    eight, plain = eight_bit(case.facts), case.choices.weights.value != "checkpoint"
    first = "set" if plain else f"take the 16-bit model{guess(case.facts.model.source)}" + (" with" if eight else "")
    if eight:
        return f"{first} quantization.weights: {eight}, which the card multiplies in its own type"
    return f"{first}{' quantization.weights: none' if plain else ''} where memory suffices"


def _weights_alone(case: Case) -> str:
    """What is stored in few bits and multiplied in 16, in words; fp8 has a rule of its own."""
    packed = [one for one in stored(case.facts, case.choices) if one.method != "widened_fp8"]
    if packed:
        return f"Weights of {packed[0].layer.bits} bits"
    return "bitsandbytes weights" if method_of(case) == "bitsandbytes" else ""


def _in_flight(case: Case) -> int:
    """Requests at once on one engine, as the file states them; 0 = it states a rate."""
    load = case.deploy.workload.concurrency
    return math.ceil(load / case.choices.replicas.value) if load else 0
