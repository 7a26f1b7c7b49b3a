"""`model.overrides`: the model as the engine reads it, with the user's keys in the place of config.json's.

vllm/config/model.py, _apply_dict_overrides (0.16.0 to 0.33.0): nested configurations are gone through key by key, any
other value is replaced whole. Positions and rotary scaling are left to `deployc.cost.context`, which knows
`model.context` as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deployc.diagnostics import Diagnostic, Span, warning
from deployc.facts.architecture import architecture
from deployc.facts.faults import Fault
from deployc.facts.shapes import shapes
from deployc.types.config import Config
from deployc.types.facts import SAFETENSORS_NAMES, ModelFacts

_NESTED = ("text_config", "llm_config", "vision_config", "audio_config")
_OF_CONTEXT = ("max_position_embeddings", "rope_scaling", "rope_parameters", "rope_theta")


def followed(model: ModelFacts, overrides: Mapping[str, Any], at: Span | None) -> tuple[ModelFacts, list[Diagnostic]]:
    """The model with its overrides; as it was, and a warning, where they cannot be read."""
    try:
        return overridden(model, overrides), []
    except Fault as wrong:
        detail = f"{wrong.diagnostic.detail.rstrip('.')}: the figures here are those without the overrides."
        fix = "correct the value, or compare with the engine's own start log before you rely on the figures"
        return model, [warning("DC214", "the figures do not follow an override", detail, fix, at)]


def overridden(model: ModelFacts, overrides: Mapping[str, Any]) -> ModelFacts:
    """The model with its overrides; tensors that headers name stay as they are stored.

    Raises Fault as `architecture` and `shapes` do: the values contradict each other, or name what is not known.
    """
    config = _merged(model.config, overrides)
    if config == model.config:
        return model
    made = replace(model, config=config)
    own = model.architecture
    read = architecture(made.read_config, SAFETENSORS_NAMES[own.dtype], dict.fromkeys(model.assume, ""))
    arch = replace(read, assumed=own.assumed, towers=own.towers)  # towers rest on a file beside config.json
    derived = model.weights_basis == "architecture"
    return replace(made, architecture=arch, tensors=shapes(made.read_config, arch) if derived else model.tensors)


def _merged(config: Config, overrides: Mapping[str, Any]) -> Config:
    values = dict(config)
    for key, value in overrides.items():
        before = values.get(key)
        if key in _NESTED and isinstance(before, Mapping) and isinstance(value, Mapping):
            values[key] = _merged(before, value)
        elif key not in _OF_CONTEXT:
            values[key] = value
    return values
