"""`quality` of the plan document: what an artifact that is in the store was measured to lose."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deployc.plan.figures import figure
from deployc.types.bundle import Bundle
from deployc.types.quality import Quality

FIGURES = ("perplexity_reference", "perplexity_artifact", "perplexity_increase", "mean_kl", "top1_agreement")


def quality(of: Quality, bundle: Bundle | None) -> dict[str, Any]:
    """All but the answers, which hold the user's own text. `current`: of the text that the file names now."""
    named = bundle.recipe.quality if bundle and bundle.recipe else None
    valid = of.valid_json
    return {
        "text": asdict(of.text),
        "current": named is not None and of.is_of(named.text),
        "lines": of.lines,
        "tokens": of.tokens,
        **{name: figure(getattr(of, name)) for name in FIGURES},
        "valid_json": {
            "asked": valid.asked,
            "reference": figure(valid.reference),
            "artifact": figure(valid.artifact),
        }
        if valid
        else None,
        "worst_layers": [{"modules": list(layer.modules), "error": layer.error} for layer in of.worst_layers],
        "not_covered": list(of.not_covered),
        "device": of.device,
    }
