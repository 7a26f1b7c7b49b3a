"""Types of weights and cache against what the card and the engine can run."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.capability import eight_bit, format_of, has_weight_kernels, interval, multiplies, runs, words
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
    if weights not in SCHEMES or (has_weight_kernels(case.facts, weights) and not experts):
        return
    if experts:
        why = f"The CPU engine does not multiply by experts in {weights}."
    elif capability is None:
        why = "The CPU engine multiplies by packed integers of 4 bits, not of 8."
    else:
        name = "W8A8 int8" if weights == "int8" else weights
        why = f"{case.card} has compute capability {words(capability)}; {name} {_where(case, format_of(weights))}."
    eight = eight_bit(case.facts)
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
    elif capability is not None and (widened := runs(case.facts, "fp8")) and widened.how == "weight-only":
        begins = words(widened.before) if widened.before else "no capability"
        why = f"{case.card} has compute capability {words(capability)}, fp8 arithmetic begins at {begins}: "
        why += f"vLLM widens the weights in the kernel ({widened.kernel}) and multiplies in 16 bit. Memory is saved "
        why += "and decode is faster; prompts are not."
    else:
        return
    eight = eight_bit(case.facts)
    yield warning(
        "DC258",
        "fp8 weights are not multiplied in fp8 on this card",
        why,
        f"set quantization.weights: {eight}, which it multiplies in its own type",
        case.deploy.at("quantization.weights"),
    )


def _where(case: Case, what: str) -> str:
    """From which compute capability on this version runs something, in words."""
    known = interval(case.facts, what)
    if known is None:
        return f"runs on no card with vLLM {case.facts.engine.version}"
    since, before = known
    return f"runs from {words(since)} " + (f"up to, not including, {words(before)}" if before else "on")


def _experts_without_kernel(case: Case) -> bool:
    experts = case.facts.model.architecture.experts > 0
    return case.on_cpu and experts and case.choices.weights.value in case.facts.calibration.kernels.without_cpu_experts


def card_has_the_dtype(case: Case) -> Iterator[Diagnostic]:
    """The engine refuses bf16 on cards without it; where the file leaves it open, float16 is taken and said."""
    capability, dtype = case.facts.smallest.compute_capability, case.choices.dtype
    if capability is None or runs(case.facts, "bfloat16") is not None:
        return
    if dtype.value == "bfloat16":
        yield error(
            "DC253",
            "the card has no bfloat16",
            f"{case.card} has compute capability {words(capability)}; bf16 {_where(case, 'bfloat16')}.",
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
    """The CPU engine holds its KV cache in the model's type; a card without units for fp8 is left to FlashInfer."""
    written = case.choices.kv_cache_dtype.value
    if case.on_cpu and written.startswith("fp8"):
        yield error(
            "DC254",
            "the CPU engine has no fp8 KV cache",
            "Its attention kernels read the model's own type only.",
            "set quantization.kv_cache: auto",
            case.deploy.at("quantization.kv_cache"),
        )
    capability = case.facts.smallest.compute_capability
    kind = {"fp8": "fp8-kv", "fp8_e4m3": "fp8-kv", "fp8_e5m2": "fp8-e5m2-kv"}.get(written)
    if not kind or capability is None or multiplies(case.facts, kind):
        return
    known, name = interval(case.facts, kind), "e5m2" if "e5m2" in kind else "e4m3"
    least = words(known[0]) if known else "every capability"
    stops = case.facts.lore.formats.fp8_kv_needs_units
    why = (
        f"vLLM {case.facts.engine.version} reads it by Triton's attention, whose kernel for fp8 ({name}) does not "
        f"compile below {least} (fp8e4nv not supported in this architecture), and does not take FlashInfer by itself."
        if stops
        else f"vLLM's Triton attention refuses fp8 ({name}) below {least} and FlashAttention below 9.0: only "
        "FlashInfer is left, and without it the engine does not start."
    )
    yield (error if stops else warning)(
        "DC255",
        "fp8 KV cache needs FlashInfer on this card",
        f"{case.card} has compute capability {words(capability)}. {why}",
        "set quantization.kv_cache: auto, or engine.args: {kv-cache-dtype: fp8_e5m2}, or use a newer version"
        if stops
        else "set quantization.kv_cache: auto, or start it once on this card before you rely on it",
        case.at("kv-cache-dtype", "quantization.kv_cache"),
    )
