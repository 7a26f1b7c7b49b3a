"""What makes vLLM 0.8 to 0.10 fall back to V0, the engine before V1: the card, the model, the adapters."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case


def falls_back(case: Case) -> Iterator[Diagnostic]:
    """V0 serves otherwise than predicted; vLLM says so in one line of its log."""
    reasons = list(_reasons(case)) if case.facts.engine.v1_needs else []
    if reasons:
        alone = case.facts.lore.v1_alone
        yield warning(
            "DC552",
            "the engine before V1 serves this",
            f"vLLM {case.facts.engine.version} falls back to its older engine, V0, because of {' and '.join(reasons)}. "
            "V0 caches no prefixes unless told, takes a prompt whole, and is slower; what is predicted is V1.",
            f"set engine.version: {alone} or a newer one: they have V1 alone"
            if alone
            else "take a newer engine.version",
            case.deploy.at("engine.version"),
        )


def _reasons(case: Case) -> Iterator[str]:
    needs, choices, model = case.facts.engine.v1_needs, case.choices, case.facts.model
    capabilities = [card.compute_capability for card in case.facts.devices if card.compute_capability]
    if needs.get("cpu") is False and case.on_cpu:
        yield "the CPU"
    if (least := tuple(needs.get("capability", ()))) and any(found < least for found in capabilities):
        yield f"a card of compute capability {'.'.join(map(str, min(capabilities)))} (V1: {'.'.join(map(str, least))})"
    if choices.dtype.value not in (*needs.get("dtypes", (choices.dtype.value,)), "auto"):
        yield f"{choices.dtype.value} (V1: {' and '.join(needs['dtypes'])})"
    if (method := model.quantization.get("quant_method")) in needs.get("quantization", ()):
        yield f"the checkpoint's {method}"
    if choices.kv_cache_dtype.value.startswith("fp8") and any(
        c[0] not in needs.get("kv_fp8", (c[0],)) for c in capabilities
    ):
        yield "an fp8 KV cache on this card"
    if needs.get("lora") is False and choices.adapter_mode.value == "serve":
        yield "adapters that are served"
