"""Which of the engine's two model runners serves a model by default: a version's rules, the first that holds rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployc.types.architecture import Architecture


@dataclass(frozen=True, slots=True)
class RunnerRule:
    """Conditions that must all hold, and the runner then; None and () ask nothing. See facts/catalogue/runner.py."""

    runner: Literal["V1", "V2"]
    listed: bool | None = None  # the architecture is one of `EngineFacts.v2_architectures`
    hybrid: bool | None = None  # attention and state layers
    attention_free: bool | None = None  # state layers alone
    experts: bool | None = None
    quantized: bool | None = None  # config.json has a quantization_config
    speculative: tuple[str, ...] = ()  # one of these methods
    speculative_not: tuple[str, ...] = ()  # a method, and none of these

    def holds(self, model: Architecture, *, listed: bool, quantized: bool, speculative: str) -> bool:
        """For such a model; `speculative` is the method, "" = none."""
        states = {cache.kind == "state" for cache in model.caches}
        asked = (
            (self.listed, listed),
            (self.hybrid, states == {True, False}),
            (self.attention_free, states == {True}),
            (self.experts, model.experts > 0),
            (self.quantized, quantized),
            (True if self.speculative else None, speculative in self.speculative),
            (True if self.speculative_not else None, speculative not in ("", *self.speculative_not)),
        )
        return all(wanted is None or wanted == found for wanted, found in asked)
