"""How one version of the engine spends memory, where versions differ: read from `profiles/engines/memory.json`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Behaviours that the memory model depends on, each with its source in the file they are read from."""

    known_since: str  # the oldest version whose sources were read
