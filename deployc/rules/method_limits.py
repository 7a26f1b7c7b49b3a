"""What a quantization method's own class asks: of the card where it is named by hand, of the type that is served."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.capability import eight_bit, words
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, error
from deployc.rules.case import Case
from deployc.rules.stored_as import taken_as


def named_method_runs_on_the_card(case: Case) -> Iterator[Diagnostic]:
    """ "The quantization method … is not supported for the current GPU" (VllmConfig._get_quantization_config)."""
    flag, capability = written_flag(case.deploy, case.facts, "quantization"), case.facts.smallest.compute_capability
    method = case.facts.engine.methods.get(str(flag[0])) if flag else None
    if flag is None or method is None or method.least is None or capability is None or method.least <= capability:
        return
    own = case.choices.weights.value == "checkpoint"
    yield error(
        "DC251",
        "these weights have no kernel on this card",
        f"vLLM {case.facts.engine.version} takes {flag[0]} from compute capability {words(method.least)} on; "
        f"{case.card} has {words(capability)}.",
        "remove it: the engine takes a kernel that the card has"
        if own
        else f"remove it and set quantization.weights: {eight_bit(case.facts) or 'none'}",
        case.at("quantization", "engine.args"),
    )


def method_takes_the_dtype(case: Case) -> Iterator[Diagnostic]:
    """ "torch.float16 is not supported for quantization method mxfp4" (as above), where the engine has no other way to
    read these weights: AWQ in bfloat16 goes to awq_marlin by itself."""
    dtype, capability = case.choices.dtype.value, case.facts.smallest.compute_capability
    named, methods = written_flag(case.deploy, case.facts, "quantization"), case.facts.engine.methods
    if case.choices.weights.value != "checkpoint" or named is not None or capability is None:
        return
    name = taken_as(case)
    ways = [methods[one] for one in (name, *case.facts.lore.accepts.get(name, ())) if one in methods]
    here = [way for way in ways if way.least is None or way.least <= capability]
    if not here or any(not way.dtypes or dtype in way.dtypes for way in here):
        return
    taken = sorted({one for way in here for one in way.dtypes if one in ("bfloat16", "float16")})
    yield error(
        "DC526",
        "the weights' method does not take this type",
        f"{case.facts.model.source} holds {name} weights, which vLLM {case.facts.engine.version} multiplies in "
        f"{' or '.join(taken)} only; with {dtype} it stops.",
        f"set model.dtype: {taken[0]}" if taken else "take a checkpoint in another format",
        case.at("dtype", "model.dtype"),
    )
