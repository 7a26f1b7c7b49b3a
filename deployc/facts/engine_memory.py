"""What a version of the engine does with memory: of each behaviour the last entry that is not newer than it."""

from __future__ import annotations

import json
from typing import Any

from deployc.data import profiles
from deployc.facts.catalogue.history import release
from deployc.facts.codec import decode
from deployc.types.engine_memory import EngineMemory


def engine_memory(version: str) -> EngineMemory:
    """Behaviours of `version`; of one older than all entries, those of the oldest. Tool data: in no lockfile."""
    return decode(EngineMemory, held("memory.json", version) | {"kv": held("kv_cache.json", version)})


def held(file: str, version: str) -> dict[str, Any]:
    """Name -> value, of the behaviours of a file of profiles/engines/ at this version."""
    read = json.loads((profiles() / "engines" / file).read_bytes())
    at = release(version)
    values: dict[str, Any] = {}
    for name, entries in read["behaviours"].items():
        valid = [entry["value"] for entry in entries if release(entry["since"]) <= at]
        values[name] = valid[-1] if valid else entries[0]["value"]
    return values
