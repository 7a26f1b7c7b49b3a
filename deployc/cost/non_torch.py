"""What the engine holds of a card outside torch: CUDA context, cuBLAS, NCCL's buffers."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure


def non_torch(facts: Facts, choices: Choices) -> Figure:
    """Bytes on one rank, by version: alone, one of several that share every layer, or of several with a stage each."""
    behaviour = facts.calibration.memory
    if choices.tensor_parallel_size.value > 1:
        return behaviour.non_torch_parallel.times(1, "B")
    alone = choices.pipeline_parallel_size.value == 1
    return (behaviour.non_torch_single if alone else behaviour.non_torch_pipeline).times(1, "B")
