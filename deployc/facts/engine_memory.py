"""What a version of the engine does with memory: of each behaviour the last entry that is not newer than it."""

from __future__ import annotations

from typing import Any

from deployc.facts.catalogue.history import valid
from deployc.facts.codec import decode
from deployc.facts.engine_table import engine_table
from deployc.types.engine_memory import EngineMemory


def engine_memory(version: str) -> EngineMemory:
    """Behaviours of `version`; of one older than all entries, those of the oldest. Tool data: in no lockfile."""
    return decode(EngineMemory, held("memory.json", version) | {"kv": held("kv_cache.json", version)})


def held(file: str, version: str) -> dict[str, Any]:
    """Name -> value, of the behaviours of a file of profiles/engines/ at this version."""
    return {name: valid(entries, version) for name, entries in engine_table(file)["behaviours"].items()}
