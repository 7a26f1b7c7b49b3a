"""`--hf-overrides`: config.json keys that the user changes, and the rotary scaling of `model.context`."""

from __future__ import annotations

from typing import Any

from deployc.emit.arguments import as_json, flag
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag
from deployc.types.facts import Facts


def hf_overrides(deploy: Deploy, facts: Facts) -> EngineFlag | None:
    """The flag, or None where nothing is overridden. The user's own keys win over ours."""
    ours = _yarn(deploy, facts)
    values = {**ours, **deploy.model.overrides}
    if not values:
        return None
    place = "model.overrides" if deploy.model.overrides else "model.context"
    return flag("hf-overrides", as_json(values), deploy.because(place), _reason(ours, facts))


def _yarn(deploy: Deploy, facts: Facts) -> dict[str, Any]:
    """YaRN from the model's own positions to `factor` times as many.

    `max_position_embeddings` is raised as well: newer versions (0.32 does) take it as already scaled and refuse a
    longer `--max-model-len`; older ones compute original x factor and come to the same number.
    """
    context = deploy.model.context
    if context is None:
        return {}
    model = facts.model.architecture
    original = int(model.rope.get("original_max_position_embeddings") or model.max_position_embeddings)
    factor = int(context.factor) if context.factor == int(context.factor) else context.factor
    rope: dict[str, Any] = {"rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": original}
    theta = model.rope.get("rope_theta", facts.model.language_config.get("rope_theta"))
    if facts.engine.rope_key == "rope_parameters" and theta is not None:
        rope["rope_theta"] = theta  # the override replaces the whole map, the base of the rotation with it
    return {"max_position_embeddings": round(original * factor), facts.engine.rope_key: rope}


def _reason(ours: dict[str, Any], facts: Facts) -> str:
    if not ours:
        return "model.overrides"
    own, longer = facts.model.architecture.max_position_embeddings, ours["max_position_embeddings"]
    return f"YaRN stretches the model's own {own:,} positions to {longer:,}"
