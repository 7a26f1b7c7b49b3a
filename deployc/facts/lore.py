"""Reads what profiles/engines/ says beyond a version's own catalogue: it ships with the tool, and no lockfile has it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from deployc.data import profiles
from deployc.facts.codec import decode
from deployc.types.lore import Gone, Lore


@cache
def lore(version: str) -> Lore:
    """All of it, as it stands for `version`; an unreadable file is a broken installation."""
    return Lore(gone=decode(dict[str, Gone], _read("gone.json")["flags"]))


def _read(file: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((profiles() / "engines" / file).read_bytes())
    return read
