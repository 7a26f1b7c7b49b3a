"""What a version's registries of names hold, and when others hold the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Registries:
    """Classes of models by the name in `architectures` of config.json, and parsers by flag; of one version."""

    classes: Mapping[str, bool] = field(default_factory=dict)  # that it has -> whether adapters are served on it
    other_classes: Mapping[str, str] = field(default_factory=dict)  # that it has not -> "came in vLLM 0.8.4"
    adapted_since: Mapping[str, str] = field(default_factory=dict)  # class without adapters here -> first with them
    by_transformers: tuple[str, ...] = ()  # it has none of its own, and its transformers has one that it takes
    parsers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # "tool-call-parser" -> values
    values: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # of the engine's own, of flags that take others
    other_parsers: Mapping[str, str] = field(default_factory=dict)  # "tool-call-parser.xlam" -> "came in vLLM 0.9.2"
