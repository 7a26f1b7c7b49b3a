"""Reads profiles/engines/exposure.json for one version: it ships with the tool, in no lockfile."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from deployc.data import profiles
from deployc.facts.catalogue.history import release
from deployc.facts.codec import decode
from deployc.types.exposure import Exposure, Route


@cache
def exposure(version: str) -> Exposure:
    """Routes and stored keys as they are at `version`."""
    read: dict[str, Any] = json.loads((profiles() / "engines" / "exposure.json").read_bytes())
    at = release(version)
    guarded = [entry for entry in read["guarded"] if release(entry["since"]) <= at] or read["guarded"][:1]
    prefixes = tuple(guarded[-1]["value"])
    routes = decode(tuple[Route, ...], read["routes"])
    there = (r for r in routes if release(r.since) <= at and not (r.until and release(r.until) <= at))
    stored = read["key_stored"]
    return Exposure(
        guarded=prefixes,
        open=tuple(route for route in there if not route.path.startswith(prefixes)),
        key_stored_until=stored["until"] if release(stored["since"]) <= at < release(stored["until"]) else "",
    )
