"""What a card can run of one version of the engine, by its compute capability: from `profiles/engines/kernels.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Capability = tuple[int, int]
"""A compute capability: 8.9 is (8, 9)."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How a format runs on the cards of [since, before)."""

    since: Capability
    before: Capability | None  # None = every later one that is known
    how: Literal["native", "weight-only"]  # multiplied in its own type, or widened to 16 bit in the kernel
    kernel: str = ""  # what multiplies: "Marlin" …; "" where that does not matter
    note: str = ""  # what else it asks

    def covers(self, capability: Capability) -> bool:
        """Whether a card of this capability is among them."""
        return self.since <= capability and (self.before is None or capability < self.before)


@dataclass(frozen=True, slots=True)
class EngineKernels:
    """What runs where in one version; each with its source in the file it is read from.

    `runs` has weights by "fp8" and "int8" (activations in 8 bits too), "int8-weight-only" and "int4" (packed integers),
    checkpoints' own "gptq", "awq", "mxfp4" and "nvfp4", the types "bfloat16", "fp8-kv" and "fp8-e5m2-kv".
    """

    runs: Mapping[str, tuple[Runs, ...]]  # by rising capability; none elsewhere
    without_cpu: tuple[str, ...]  # weights that the CPU engine has no kernel for
    without_cpu_experts: tuple[str, ...]  # nor for experts in them
    cpu_tile: int  # what inputs and outputs of packed layers must be multiples of on the CPU engine
    packed_byte_experts: int  # what the hidden size of experts in packed bytes, a scale a row, must be a multiple of
    torch_image: tuple[Capability, ...]  # that torch is built for, as the image has it
    torch_wheel: tuple[Capability, ...]  # the same, as the engine's wheel is installed beside it
