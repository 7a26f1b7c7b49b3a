"""What the served weights are stored in: made by us, or as config.json's quantization_config says of the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.cost.capability import eight_bit
from deployc.diagnostics import Span
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.rules.case import Case


def method_of(case: Case) -> str:
    """The checkpoint's own `quant_method`; "" where the weights are ours."""
    if case.choices.weights.value != "checkpoint":
        return ""
    return str(case.facts.model.quantization.get("quant_method", "")).lower().replace("_", "-")


def taken_as(case: Case) -> str:
    """The engine's own name of the checkpoint's method: modelopt has several, told by its algorithm
    (`override_quantization_method`, vllm/model_executor/layers/quantization/modelopt.py)."""
    method, algorithm = method_of(case), _algorithm(case.facts.model.quantization)
    if method == "modelopt":
        kinds = {"MXFP8": "modelopt_mxfp8", "MIXED": "modelopt_mixed", "FP4": "modelopt_fp4"}
        return next((name for kind, name in kinds.items() if kind in algorithm), method)
    return method


def _algorithm(said: Mapping[str, Any]) -> str:
    """ "NVFP4", "FP8" …: of modelopt's config, which may hold it one level down."""
    inner = said.get("quantization")
    return str((inner if isinstance(inner, Mapping) else said).get("quant_algo", "")).upper()


def format_of(case: Case) -> str:
    """The checkpoint's format by its name in `EngineKernels.runs`; "" = none is known."""
    said, method = case.facts.model.quantization, method_of(case)
    if method in ("gptq", "awq", "mxfp4"):
        return method
    groups = [group for group in (said.get("config_groups") or {}).values() if isinstance(group, Mapping)]
    weights = [group.get("weights") or {} for group in groups]
    if method == "modelopt" and "FP4" in _algorithm(said):
        return "nvfp4"
    if weights and all(one.get("num_bits") == 4 for one in weights):
        kinds = {"nvfp4" if one.get("type") == "float" else "int4" for one in weights}
        return kinds.pop() if len(kinds) == 1 else ""
    return eight_bits(case)


def eight_bits(case: Case) -> str:
    """fp8, int8 or int8-weight-only, made by us or as the source has it; "" = another format."""
    weights, said = case.choices.weights.value, case.facts.model.quantization
    if weights != "checkpoint":
        return weights if weights in ("fp8", "int8", "int8-weight-only") else ""
    method = method_of(case)
    if method in ("fp8", "fbgemm-fp8"):
        return "fp8"
    if method == "bitsandbytes":
        return "int8-weight-only" if said.get("load_in_8bit") else ""
    if method == "gptq":
        return "int8-weight-only" if said.get("bits") == 8 else ""
    groups = [group for group in (said.get("config_groups") or {}).values() if isinstance(group, Mapping)]
    kinds = {_kind(group) for group in groups}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind(group: Mapping[str, Any]) -> str:
    """Of one group of compressed-tensors."""
    weights, inputs = group.get("weights") or {}, group.get("input_activations")
    if weights.get("num_bits") != 8:
        return ""
    if weights.get("type") == "float":
        return "fp8"
    return "int8" if inputs else "int8-weight-only"


def weights_at(case: Case) -> Span | None:
    """Where the file says it."""
    written = case.deploy.written("quantization.weights")
    return case.deploy.at("quantization.weights" if written else "model.source")


def on_this_card(case: Case) -> str:
    """What to serve where the card does not run the checkpoint's format as one would wish."""
    eight = eight_bit(case.facts)
    return f"take the 16-bit model{guess(case.facts.model.source)} with quantization.weights: {eight or 'none'}"
