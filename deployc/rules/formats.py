"""Types of weights and cache against what the card and the engine can run."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.capability import (
    BF16_SINCE,
    FP8_KV_SINCE,
    FP8_SINCE,
    INT8_BEFORE,
    INT8_SINCE,
    KERNELS_SINCE,
    WITHOUT_CPU_EXPERTS,
    eight_bit,
    has_weight_kernels,
    words,
)
from deployc.cost.weights.formats import SCHEMES
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.rules.case import Case


def quantized_twice(case: Case) -> Iterator[Diagnostic]:
    """A checkpoint that is quantized already cannot be merged into, nor quantized again."""
    quantization = case.facts.model.quantization
    if not quantization or not case.choices.needs_build:
        return
    name = quantization.get("quant_method", "quantized")
    merging = case.choices.adapter_mode.value == "merge"
    what = "a merge" if merging else case.choices.weights.value
    names = (case.facts.model.source, *(adapter.base for adapter in case.facts.adapters))
    yield error(
        "DC250",
        "the checkpoint is quantized already",
        f"{case.facts.model.source} holds {name} weights: {what} needs 16-bit ones.",
        f"name the 16-bit base model{guess(*names)} as model.source"
        + (", or serve the adapter: mode: serve" if merging else ", or set quantization.weights: checkpoint"),
        case.deploy.at("adapters" if merging else "quantization.weights"),
    )


def weights_have_a_kernel(case: Case) -> Iterator[Diagnostic]:
    """What the engine refuses to load on this card, or has no kernel for."""
    weights, capability = case.choices.weights.value, case.facts.smallest.compute_capability
    experts = _experts_without_kernel(case)
    if weights not in SCHEMES or (has_weight_kernels(case.facts.smallest, weights) and not experts):
        return
    if experts:
        why = f"The CPU engine does not multiply by experts in {weights}."
    elif capability is None:
        why = "The CPU engine multiplies by packed integers of 4 bits, not of 8."
    elif weights == "int8":
        why = f"{case.card} has compute capability {words(capability)}; W8A8 int8 runs from {words(INT8_SINCE)} up to, "
        why += f"not including, {words(INT8_BEFORE)}."
    else:
        why = f"{case.card} has compute capability {words(capability)}; {weights} runs from {words(KERNELS_SINCE)} on."
    eight = eight_bit(case.facts.smallest)
    yield error(
        "DC251",
        "these weights have no kernel on this card",
        why,
        f"set quantization.weights: {eight}, its own 8-bit type" if eight else "set quantization.weights: none",
        case.deploy.at("quantization.weights"),
    )


def fp8_is_multiplied(case: Case) -> Iterator[Diagnostic]:
    """Where fp8 weights save memory and no arithmetic; on the CPU, not even time."""
    capability = case.facts.smallest.compute_capability
    if case.choices.weights.value != "fp8" or _experts_without_kernel(case):
        return
    if case.on_cpu:
        why = "The CPU engine multiplies them by torch's own fp8 product, which took seconds a token of a small model: "
        why += "good for a test, not for people."
    elif capability is not None and KERNELS_SINCE <= capability < FP8_SINCE:
        why = f"{case.card} has compute capability {words(capability)}, fp8 arithmetic begins at {words(FP8_SINCE)}: "
        why += "vLLM widens the weights in the kernel (Marlin) and multiplies in 16 bit. Memory is saved and decode is "
        why += "faster; prompts are not."
    else:
        return
    eight = eight_bit(case.facts.smallest)
    yield warning(
        "DC258",
        "fp8 weights are not multiplied in fp8 on this card",
        why,
        f"set quantization.weights: {eight}, which it multiplies in its own type",
        case.deploy.at("quantization.weights"),
    )


def _experts_without_kernel(case: Case) -> bool:
    experts = case.facts.model.architecture.experts > 0
    return case.on_cpu and experts and case.choices.weights.value in WITHOUT_CPU_EXPERTS


def card_has_the_dtype(case: Case) -> Iterator[Diagnostic]:
    """bf16 from 8.0 on: the engine refuses it below; where the file leaves it open, float16 is taken and said."""
    capability, dtype = case.facts.smallest.compute_capability, case.choices.dtype
    if capability is None or capability >= BF16_SINCE:
        return
    if dtype.value == "bfloat16":
        yield error(
            "DC253",
            "the card has no bfloat16",
            f"{case.card} has compute capability {words(capability)}; bf16 needs {words(BF16_SINCE)}.",
            "set model.dtype: float16",
            case.deploy.at("model.dtype"),
        )
    elif dtype.because == "DC252":
        yield warning(
            "DC252",
            "bfloat16 weights are served as float16",
            f"{case.card} has compute capability {words(capability)}, without bf16. float16 overflows above 65,504: "
            "some models answer with garbage.",
            "compare answers before you ship; set model.dtype: float16 to say that you did",
            case.deploy.at("model.dtype"),
        )


def fp8_kv_has_a_kernel(case: Case) -> Iterator[Diagnostic]:
    """The CPU engine holds its KV cache in the model's type."""
    if case.on_cpu and case.choices.kv_cache_dtype.value.startswith("fp8"):
        yield error(
            "DC254",
            "the CPU engine has no fp8 KV cache",
            "Its attention kernels read the model's own type only.",
            "set quantization.kv_cache: auto",
            case.deploy.at("quantization.kv_cache"),
        )
    capability = case.facts.smallest.compute_capability
    e4m3 = case.choices.kv_cache_dtype.value in ("fp8", "fp8_e4m3")
    if not case.on_cpu and e4m3 and capability is not None and capability < FP8_KV_SINCE:
        yield warning(
            "DC255",
            "fp8 KV cache needs FlashInfer on this card",
            f"{case.card} has compute capability {words(capability)}. vLLM's Triton attention refuses fp8 (e4m3) below "
            f"{words(FP8_KV_SINCE)} and FlashAttention below 9.0: only FlashInfer is left, and without it the engine "
            "does not start.",
            "set quantization.kv_cache: auto, or start it once on this card before you rely on it",
            case.deploy.at("quantization.kv_cache"),
        )
