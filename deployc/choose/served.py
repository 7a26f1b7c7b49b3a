"""The model that the engine will load: as its source has it, or as a merge of its adapters makes it."""

from __future__ import annotations

from dataclasses import replace

from deployc.choose.format import adapter_mode
from deployc.rules.adapter_shapes import adapter_shapes, merged
from deployc.spec.deploy import Deploy
from deployc.types.facts import Facts


def as_served(deploy: Deploy, facts: Facts) -> Facts:
    """Facts whose model has the artifact's tensors and config, where merged adapters change their shapes."""
    if adapter_mode(deploy).value != "merge" or facts.base is not None or facts.model.quantization:
        return facts
    if any(d.severity.value == "error" for a in facts.adapters for d in adapter_shapes(facts.model, a, None)):
        return facts
    after = merged(facts.model, facts.adapters)
    return replace(facts, model=after.model, base=facts.model, mended=after.mended) if after.mended else facts
