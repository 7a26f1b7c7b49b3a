"""Reads profiles/calibration/effects.json: what settings were measured to cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from deployc.data import profiles
from deployc.types.figure import Factor


@cache
def effects() -> Mapping[str, Factor]:
    """By name, the ratio of speeds without a setting and with it. Ships with the tool."""
    read = json.loads((profiles() / "calibration" / "effects.json").read_bytes())
    return {name: Factor(**row) for name, row in read["effects"].items()}
