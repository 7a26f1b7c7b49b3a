"""Reads profiles/calibration/: the constants of the cost model."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from deployc.data import profiles
from deployc.facts.engine_kernels import engine_kernels
from deployc.facts.engine_memory import engine_memory
from deployc.types.calibration import Calibration
from deployc.types.figure import Factor
from deployc.types.speed import Constants, Errors, Kernel, SpeedProfile


@cache
def calibration(version: str) -> Calibration:
    """The constants for a version of vLLM; they ship with the tool: an unreadable file is a broken installation."""
    profile = json.loads((profiles() / "calibration" / "vllm.json").read_text(encoding="utf-8"))
    factors = {n: Factor(**row) for n, row in profile["factors"].items()}
    return Calibration(
        factors, profile["measured_on"], engine_memory(version), speed_profiles(), engine_kernels(version)
    )


@cache
def speed_profiles() -> tuple[SpeedProfile, ...]:
    """The fits of the speed model that ship with the tool, and the recalled constants of the CPU engine."""
    document = json.loads((profiles() / "calibration" / "speed.json").read_text(encoding="utf-8"))
    return tuple(speed_profile(row) for row in document["profiles"])


def speed_profile(row: dict[str, Any]) -> SpeedProfile:
    """One entry of speed.json."""
    kernels = {name: Kernel(**values) for name, values in row["constants"]["kernels"].items()}
    return SpeedProfile(
        gpu=row["gpu"],
        compute_capability=tuple(row["compute_capability"]),
        engine_version=row["engine_version"],
        said=row["said"],
        constants=Constants(**row["constants"] | {"kernels": kernels}),
        errors=Errors(**row["errors"]),
        rows=tuple(row["rows"]),
        measured=tuple(row["measured"]),
    )
