"""Reads profiles/calibration/: the constants of the cost model."""

from __future__ import annotations

import json
from functools import cache

from deployc.data import profiles
from deployc.facts.engine_memory import engine_memory
from deployc.types.calibration import Calibration
from deployc.types.figure import Factor


@cache
def calibration(version: str) -> Calibration:
    """The constants for a version of vLLM; they ship with the tool: an unreadable file is a broken installation."""
    profile = json.loads((profiles() / "calibration" / "vllm.json").read_text(encoding="utf-8"))
    return Calibration(
        {n: Factor(**row) for n, row in profile["factors"].items()}, profile["measured_on"], engine_memory(version)
    )
