"""A checkpoint that is quantized as it comes: what its method asks of version, cards and load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from deployc.cost.capability import eight_bit, interval, multiplies, runs, words
from deployc.cost.other_cards import starts
from deployc.cost.weights.packed import stored
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, Span, error, note, warning
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.rules.case import Case
from deployc.rules.remedies import with_value

_SMALL = 8
"""Requests at once from which on bitsandbytes' 8-bit product is no slower than 16 bit (vllm pull request 44684)."""


def method_is_there(case: Case) -> Iterator[Diagnostic]:
    """Methods that moved out of the engine, or that this version never had; nothing is said where none are known."""
    methods = case.facts.engine.methods
    flag = written_flag(case.deploy, case.facts, "quantization")
    named = {"model.source": _method(case), "quantization": str(flag[0]) if flag else ""}
    for where, method in named.items():
        known = methods.get(method) or methods.get(f"auto_{method}")
        if not method or not methods or (known and not known.plugin) or (known is None and where != "model.source"):
            continue  # a value of the flag that it does not have is said where flags are
        at = case.at("quantization", "model.source") if where == "quantization" else case.deploy.at(where)
        yield error(
            "DC583",
            "this version does not read weights of this method",
            f"vLLM {case.facts.engine.version} has no {method} of its own"
            + (f": it moved to {known.plugin}, which its image does not have." if known else "."),
            _without_method(case, known.plugin if known else "", flag=where == "quantization"),
            at,
        )


def method_runs_on_the_card(case: Case) -> Iterator[Diagnostic]:
    """What the checkpoint is in, against what this version runs on cards of this capability."""
    form, capability = _format(case), case.facts.smallest.compute_capability
    method = case.facts.engine.methods.get(taken_as(case))
    least = method.least if method is not None else None
    if case.on_cpu or capability is None or case.choices.weights.value != "checkpoint":
        return
    lacking = bool(form) and runs(case.facts, form) is None
    if not lacking and (least is None or least <= capability):
        return
    known = interval(case.facts, form) if lacking else (least or capability, None)
    where = "on no card" if known is None else f"from {words(known[0])} on"
    where += f" and before {words(known[1])}" if known and known[1] else ""
    yield error(
        "DC251",
        "these weights have no kernel on this card",
        f"{case.facts.model.source} holds {form or _method(case)} weights; {case.card} has compute capability "
        f"{words(capability)}, and vLLM {case.facts.engine.version} runs them {where}.",
        _on_this_card(case),
        case.deploy.at("model.source"),
    )


def _on_this_card(case: Case) -> str:
    eight = eight_bit(case.facts)
    return f"take the 16-bit model{guess(case.facts.model.source)} with quantization.weights: {eight or 'none'}"


def _without_method(case: Case, plugin: str, flag: bool) -> str:
    eight, plain = eight_bit(case.facts) or "int4-rtn", guess(case.facts.model.source)
    if flag and not _method(case):
        return f"remove engine.args.quantization and set quantization.weights: {eight}, which is made once, beforehand"
    added = f"add {plugin} in an image of your own (engine.image); or " if plugin else ""
    return (
        f"{added}name the 16-bit model{plain} and set quantization.weights; or take a checkpoint of compressed-tensors"
    )


def experts_are_read(case: Case) -> Iterator[Diagnostic]:
    """bitsandbytes' 8 bits have no experts: vllm/model_executor/model_loader/bitsandbytes_loader.py ("Prequant
    BitsAndBytes 8bit models with FusedMoE is not supported yet", 0.23.0)."""
    said = case.facts.model.quantization
    if _method(case) != "bitsandbytes" or not said.get("load_in_8bit") or not case.facts.model.architecture.experts:
        return
    yield error(
        "DC583",
        "this version does not read weights of this method",
        f"{case.facts.model.source} has experts in bitsandbytes' 8 bits, which the engine's loader refuses.",
        _on_this_card(case),
        case.deploy.at("model.source"),
    )


def method_divides(case: Case) -> Iterator[Diagnostic]:
    """Methods whose packed rows cannot be cut: the loader refuses tensor parallelism."""
    method, ranks = _method(case), case.choices.tensor_parallel_size.value
    if ranks == 1 or method not in case.facts.lore.formats.unsplit:
        return
    cards, alone = ranks * case.choices.replicas.value, with_value(case.choices, tensor_parallel_size=1)
    one = f"set engine.parallel: {{tensor: 1, replicas: {cards}}}; or " if starts(case.facts, alone) else ""
    yield error(
        "DC582",
        "a checkpoint of this method cannot be divided over cards",
        f"{case.facts.model.source} holds {method} weights, packed in rows that no cut meets; with "
        f"tensor_parallel_size {ranks} the engine does not start.",
        f"{one}take a checkpoint in AWQ, GPTQ or compressed-tensors, or the 16-bit model"
        f"{guess(case.facts.model.source)} with quantization.weights",
        case.at("tensor-parallel-size", "engine.parallel.tensor"),
    )


def bitsandbytes_is_slow(case: Case) -> Iterator[Diagnostic]:
    """8 bits: no CUDA graphs (vllm/config/model.py, _verify_bnb_config), and weights unpacked before every product."""
    said = case.facts.model.quantization
    if case.on_cpu or _method(case) != "bitsandbytes" or not said.get("load_in_8bit"):
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
        _at(case),
    )


def fp8_checkpoint_is_widened(case: Case) -> Iterator[Diagnostic]:
    """fp8 as the source has it, on a card without units for it."""
    found = runs(case.facts, "fp8")
    if case.on_cpu or case.choices.weights.value != "checkpoint" or _eight_bits(case) != "fp8":
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
        _on_this_card(case),
        _at(case),
    )


def int8_path(case: Case) -> Iterator[Diagnostic]:
    """Which of the two int8 runs: products of 8-bit integers, or weights alone, widened."""
    weights, native = case.choices.weights.value, multiplies(case.facts, "int8")
    asked = case.deploy.written("quantization.weights") or weights == "checkpoint"
    eight, capability = _eight_bits(case), case.facts.smallest.compute_capability
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
            _at(case),
        )
    elif eight == "int8-weight-only" and _method(case) != "bitsandbytes":  # which says more of itself
        yield warning(
            "DC586",
            "which int8 runs",
            f"The weights alone are 8-bit integers: on {card} they are widened to 16 bit in the kernel. Memory is "
            "halved and decode is faster; prompts are not.",
            _multiplied(case),
            _at(case),
        )


def _multiplied(case: Case) -> str:
    """The weights whose products win: in the card's own 8 bits, else in 16."""
    eight, plain = eight_bit(case.facts), case.choices.weights.value != "checkpoint"
    first = "set" if plain else f"take the 16-bit model{guess(case.facts.model.source)}" + (" with" if eight else "")
    if eight:
        return f"{first} quantization.weights: {eight}, which the card multiplies in its own type"
    return f"{first}{' quantization.weights: none' if plain else ''} where memory suffices"


def int8_in_small_batches(case: Case) -> Iterator[Diagnostic]:
    """Sizes of batches for which the int8 product of a generation of cards is not tuned."""
    for major, minor, first, last in case.facts.lore.formats.untuned_int8:
        batch = min(_in_flight(case), case.choices.max_num_seqs.value)
        if case.facts.smallest.compute_capability != (major, minor) or not first <= batch <= last:
            continue
        if _eight_bits(case) == "int8":
            yield note(
                "DC587",
                "int8 is not tuned for batches of this size on this card",
                f"{batch} requests at once are a batch of {first} to {last} rows, for which the int8 product on "
                f"compute capability {major}.{minor} takes tiles that are too large: a call takes 1.3 to 2 times as "
                "long as just below.",
                "set quantization.weights: fp8, whose product has no such step here",
                _at(case),
            )


def _method(case: Case) -> str:
    if case.choices.weights.value != "checkpoint":
        return ""
    return str(case.facts.model.quantization.get("quant_method", "")).lower().replace("_", "-")


def _weights_alone(case: Case) -> str:
    """What is stored in few bits and multiplied in 16, in words; fp8 has a rule of its own."""
    packed = [one for one in stored(case.facts, case.choices) if one.method != "widened_fp8"]
    if packed:
        return f"Weights of {packed[0].layer.bits} bits"
    return "bitsandbytes weights" if _method(case) == "bitsandbytes" else ""


def _eight_bits(case: Case) -> str:
    """fp8, int8 or int8-weight-only, made by us or as the source has it; "" = another format."""
    weights, said = case.choices.weights.value, case.facts.model.quantization
    if weights != "checkpoint":
        return weights if weights in ("fp8", "int8", "int8-weight-only") else ""
    method = _method(case)
    if method in ("fp8", "fbgemm-fp8"):
        return "fp8"
    if method == "bitsandbytes":
        return "int8-weight-only" if said.get("load_in_8bit") else ""
    if method == "gptq":
        return "int8-weight-only" if said.get("bits") == 8 else ""
    groups = [group for group in (said.get("config_groups") or {}).values() if isinstance(group, Mapping)]
    kinds = {_kind(group) for group in groups}
    return kinds.pop() if len(kinds) == 1 else ""


def taken_as(case: Case) -> str:
    """The engine's own name of the checkpoint's method: modelopt has several, told by its algorithm
    (`override_quantization_method`, vllm/model_executor/layers/quantization/modelopt.py)."""
    method, algorithm = _method(case), _algorithm(case.facts.model.quantization)
    if method == "modelopt":
        kinds = {"MXFP8": "modelopt_mxfp8", "MIXED": "modelopt_mixed", "FP4": "modelopt_fp4"}
        return next((name for kind, name in kinds.items() if kind in algorithm), method)
    return method


def _algorithm(said: Mapping[str, Any]) -> str:
    """ "NVFP4", "FP8" …: of modelopt's config, which may hold it one level down."""
    inner = said.get("quantization")
    return str((inner if isinstance(inner, Mapping) else said).get("quant_algo", "")).upper()


def _format(case: Case) -> str:
    """The checkpoint's format by its name in `EngineKernels.runs`; "" = none is known."""
    said, method = case.facts.model.quantization, _method(case)
    if method in ("gptq", "awq", "mxfp4"):
        return method
    groups = [group for group in (said.get("config_groups") or {}).values() if isinstance(group, Mapping)]
    weights = [group.get("weights") or {} for group in groups]
    if method == "modelopt" and "FP4" in _algorithm(said):
        return "nvfp4"
    if weights and all(one.get("num_bits") == 4 for one in weights):
        kinds = {"nvfp4" if one.get("type") == "float" else "int4" for one in weights}
        return kinds.pop() if len(kinds) == 1 else ""
    return _eight_bits(case)


def _kind(group: Mapping[str, Any]) -> str:
    """Of one group of compressed-tensors."""
    weights, inputs = group.get("weights") or {}, group.get("input_activations")
    if weights.get("num_bits") != 8:
        return ""
    if weights.get("type") == "float":
        return "fp8"
    return "int8" if inputs else "int8-weight-only"


def _in_flight(case: Case) -> int:
    """Requests at once on one engine, as the file states them; 0 = it states a rate."""
    load = case.deploy.workload.concurrency
    return math.ceil(load / case.choices.replicas.value) if load else 0


def _at(case: Case) -> Span | None:
    written = case.deploy.written("quantization.weights")
    return case.deploy.at("quantization.weights" if written else "model.source")
