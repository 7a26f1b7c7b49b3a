"""What a version of the engine runs on which card: of each behaviour the last entry that is not newer than it."""

from __future__ import annotations

from typing import Any

from deployc.facts.codec import decode
from deployc.facts.engine_memory import held
from deployc.types.engine_kernels import EngineKernels

RUNS = "runs."
"""How the names of formats begin in the file."""


def engine_kernels(version: str) -> EngineKernels:
    """Intervals of `version`; of one older than all entries, those of the oldest. Tool data: in no lockfile."""
    read = held("kernels.json", version)
    runs = {name.removeprefix(RUNS): value for name, value in read.items() if name.startswith(RUNS)}
    rest: dict[str, Any] = {name: value for name, value in read.items() if not name.startswith(RUNS)}
    return decode(EngineKernels, {"runs": runs, **rest})
