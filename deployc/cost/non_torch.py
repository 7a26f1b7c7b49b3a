"""What the engine holds of a card outside torch: CUDA context, cuBLAS, NCCL's buffers."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure


def non_torch(facts: Facts, choices: Choices) -> Figure:
    """Bytes on one rank, by version: alone, or one of several that speak with each other."""
    behaviour = facts.calibration.memory
    alone = choices.tensor_parallel_size.value == 1
    return (behaviour.non_torch_single if alone else behaviour.non_torch_parallel).times(1, "B")
