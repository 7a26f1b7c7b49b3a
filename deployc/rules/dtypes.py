"""The type that a model computes in, against what the engine takes of it."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.capability import runs, words
from deployc.diagnostics import Diagnostic, error
from deployc.rules.case import Case


def model_bears_float16(case: Case) -> Iterator[Diagnostic]:
    """Families whose activations pass float16's 65,504: the engine refuses it for them by name (vllm/config/model.py,
    _FLOAT16_NOT_SUPPORTED_MODELS), whether the file asks for it or the card has nothing else."""
    facts, dtype = case.facts, case.choices.dtype
    kinds = {facts.model.config.get("model_type"), facts.model.architecture.model_type}
    refused = sorted(str(kind) for kind in kinds if kind in facts.lore.formats.without_float16)
    if dtype.value != "float16" or not refused:
        return
    capability = facts.smallest.compute_capability
    has_bf16 = capability is None or runs(facts, "bfloat16") is not None
    because = "" if has_bf16 else f" {case.card} (compute capability {words(capability or (0, 0))}) has no bfloat16."
    yield error(
        "DC588",
        "this model does not bear float16",
        f"{refused[0]} models overflow in float16; vLLM {facts.engine.version} refuses to start them in it.{because}",
        "set model.dtype: bfloat16" if has_bf16 else "use a card of compute capability 8.0 or newer, or another model",
        case.deploy.at("model.dtype"),
    )
