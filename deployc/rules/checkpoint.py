"""A checkpoint that is quantized as it comes: what its method asks of version, cards and ranks."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.capability import eight_bit, interval, runs, words
from deployc.cost.other_cards import starts
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, error
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.rules.stored_as import format_of, method_of, on_this_card, taken_as


def method_is_there(case: Case) -> Iterator[Diagnostic]:
    """Methods that moved out of the engine, or that this version never had; nothing is said where none are known."""
    methods = case.facts.engine.methods
    flag = written_flag(case.deploy, case.facts, "quantization")
    named = {"model.source": method_of(case), "quantization": str(flag[0]) if flag else ""}
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
    form, capability = format_of(case), case.facts.smallest.compute_capability
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
        f"{case.facts.model.source} holds {form or method_of(case)} weights; {case.card} has compute capability "
        f"{words(capability)}, and vLLM {case.facts.engine.version} runs them {where}.",
        on_this_card(case),
        case.deploy.at("model.source"),
    )


def _without_method(case: Case, plugin: str, flag: bool) -> str:
    eight, plain = eight_bit(case.facts) or "int4-rtn", guess(case.facts.model.source)
    if flag and not method_of(case):
        return f"remove engine.args.quantization and set quantization.weights: {eight}, which is made once, beforehand"
    added = f"add {plugin} in an image of your own (engine.image); or " if plugin else ""
    return (
        f"{added}name the 16-bit model{plain} and set quantization.weights; or take a checkpoint of compressed-tensors"
    )


def experts_are_read(case: Case) -> Iterator[Diagnostic]:
    """bitsandbytes' 8 bits have no experts: vllm/model_executor/model_loader/bitsandbytes_loader.py ("Prequant
    BitsAndBytes 8bit models with FusedMoE is not supported yet", 0.23.0)."""
    said = case.facts.model.quantization
    if method_of(case) != "bitsandbytes" or not said.get("load_in_8bit") or not case.facts.model.architecture.experts:
        return
    yield error(
        "DC583",
        "this version does not read weights of this method",
        f"{case.facts.model.source} has experts in bitsandbytes' 8 bits, which the engine's loader refuses.",
        on_this_card(case),
        case.deploy.at("model.source"),
    )


def method_divides(case: Case) -> Iterator[Diagnostic]:
    """Methods whose packed rows cannot be cut: the loader refuses tensor parallelism."""
    method, ranks = method_of(case), case.choices.tensor_parallel_size.value
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
