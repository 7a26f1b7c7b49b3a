"""Which kind of kernel multiplies by the quantized weights."""

from __future__ import annotations

from deployc.cost.capability import multiplies
from deployc.cost.weights.formats import scheme
from deployc.types.choices import Choices
from deployc.types.config import Config
from deployc.types.facts import Facts
from deployc.types.scheme import packed_bits


def kernel(facts: Facts, choices: Choices) -> str:
    """ "bf16" | "fp8" | "int8" | "w8a16" | "w4a16": by what is stored, and whether activations are 8-bit too."""
    own = scheme(choices)
    if own is not None:
        bits, eight = own.bits, str(own.kind) if own.kind in ("fp8", "int8") else ""
    else:
        bits, eight = _stored(facts.model.quantization)
    if eight == "fp8" and not multiplies(facts, "fp8"):
        eight = ""
    if eight:
        return eight
    return "bf16" if bits >= 16 else "w8a16" if bits == 8 else "w4a16"


def _stored(quantization: Config) -> tuple[int, str]:
    """Bits of the checkpoint's weights, and "fp8" or "int8" where activations are too."""
    method = str(quantization.get("quant_method", ""))
    if not method:
        return 16, ""
    groups = [g for g in (quantization.get("config_groups") or {}).values() if isinstance(g, dict)]
    for group in groups:
        weights, inputs = group.get("weights") or {}, group.get("input_activations")
        bits = int(weights.get("num_bits") or 16)
        if bits == 8 and inputs:
            return 8, "fp8" if weights.get("type") == "float" else "int8"
        return bits, ""
    if method in ("fp8", "fbgemm_fp8", "modelopt", "fp_quant"):
        return 8, "fp8"
    if method == "bitsandbytes":
        return (8 if quantization.get("load_in_8bit") else 4), ""
    if "mxfp4" in method or "fp4" in method:
        return 4, ""
    return packed_bits(quantization), ""
