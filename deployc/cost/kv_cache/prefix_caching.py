"""Whether the engine keeps equal prefixes where nobody says so."""

from __future__ import annotations

from deployc.types.facts import Facts


def keeps_prefixes(facts: Facts) -> bool:
    """The engine's default for such a model: of layers with a state it depends on the version."""
    states = any(cache.kind == "state" for cache in facts.model.architecture.caches)
    return not states or facts.calibration.memory.state_prefix_caching
