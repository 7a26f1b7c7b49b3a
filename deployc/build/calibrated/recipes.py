"""Our recipe as llm-compressor's modifiers. Runs in the build interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def modifiers(method: str, group_size: int, strength: float, alone: Sequence[str]) -> list[Any]:
    """What is applied, in this order: each goes through the model by itself, so a later one sees what an earlier made.

    `alone` are the modules that stay at 16 bit. GPTQ: symmetric (W4A16). AWQ scales channels and leaves rounding to the
    second modifier, with zero points (W4A16_ASYM, as in its own examples). SmoothQuant: int8 with a scale a row,
    activations quantized as they come (W8A8).
    """
    from llmcompressor.modifiers.gptq import GPTQModifier
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from llmcompressor.modifiers.transform import AWQModifier, SmoothQuantModifier

    ignore = list(alone)
    if method == "gptq":
        return [GPTQModifier(config_groups=_groups(4, group_size, symmetric=True), ignore=ignore)]
    if method == "awq":
        rounding = QuantizationModifier(config_groups=_groups(4, group_size, symmetric=False), ignore=ignore)
        return [AWQModifier(), rounding]
    rounding = QuantizationModifier(config_groups=_groups(8, 0, symmetric=True), ignore=ignore)
    return [SmoothQuantModifier(smoothing_strength=strength, ignore=ignore), rounding]


def _groups(bits: int, group_size: int, symmetric: bool) -> dict[str, Any]:
    """One group of all linear layers: weights alone in groups of inputs, or a scale a row and activations a token."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    shared = {"num_bits": bits, "type": "int", "symmetric": symmetric}
    if group_size:
        weights = QuantizationArgs(**shared, strategy="group", group_size=group_size, dynamic=False)
        return {"group_0": QuantizationScheme(targets=["Linear"], weights=weights)}
    weights = QuantizationArgs(**shared, strategy="channel", dynamic=False)
    inputs = QuantizationArgs(**shared, strategy="token", dynamic=True)
    return {"group_0": QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)}
