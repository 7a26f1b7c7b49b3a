"""The measured and recalled constants of the cost model: tool data, each with band, basis and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployc.types.engine_kernels import EngineKernels
from deployc.types.engine_memory import EngineMemory
from deployc.types.figure import Factor
from deployc.types.speed import SpeedProfile


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors by name; asking for one that the profile lacks is a fault of ours, never a default."""

    factors: Mapping[str, Factor]
    measured_on: str = ""  # "vLLM 0.25.1 on NVIDIA H200": where the measured ones were read
    engine: EngineMemory | None = None
    speed: tuple[SpeedProfile, ...] = ()
    runs: EngineKernels | None = None

    def __getitem__(self, name: str) -> Factor:
        return self.factors[name]

    @property
    def memory(self) -> EngineMemory:
        """How the engine's version spends memory."""
        if self.engine is None:
            raise LookupError("these facts were not given the engine's memory behaviours")
        return self.engine

    @property
    def kernels(self) -> EngineKernels:
        """What the engine's version runs on which card."""
        if self.runs is None:
            raise LookupError("these facts were not given the engine's kernels")
        return self.runs


NOT_CALIBRATED = Calibration({})
"""Facts as RESOLVE hands them on: the constants are put in beside them before anything is predicted."""
