"""Reads profiles/engines/exposure.json for one version: it ships with the tool, in no lockfile."""

from __future__ import annotations

from functools import cache

from deployc.facts.catalogue.history import valid, within
from deployc.facts.codec import decode
from deployc.facts.engine_table import engine_table
from deployc.types.exposure import Exposure, Route


@cache
def exposure(version: str) -> Exposure:
    """Routes and stored keys as they are at `version`."""
    read = engine_table("exposure.json")
    prefixes = tuple(valid(read["guarded"], version))
    routes = decode(tuple[Route, ...], read["routes"])
    there = (route for route in routes if within(version, route.since, route.until or ""))
    stored = read["key_stored"]
    return Exposure(
        guarded=prefixes,
        open=tuple(route for route in there if not route.path.startswith(prefixes)),
        key_stored_until=stored["until"] if within(version, stored["since"], stored["until"]) else "",
    )
