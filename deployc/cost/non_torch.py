"""What the engine holds of a card outside torch: CUDA context, cuBLAS, NCCL's buffers."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Factor, Figure


def non_torch(facts: Facts, choices: Choices) -> Figure:
    """Bytes on one rank, by version: alone, one of several that share every layer, or of several with a stage each."""
    behaviour = facts.calibration.memory
    if choices.tensor_parallel_size.value > 1:
        return (behaviour.non_torch_pcie if _over_pcie(facts) else behaviour.non_torch_parallel).times(1, "B")
    alone = choices.pipeline_parallel_size.value == 1
    return (behaviour.non_torch_single if alone else behaviour.non_torch_pipeline).times(1, "B")


def before_check(facts: Facts, ranks: int) -> Factor:
    """Bytes that the engine holds of a card when it asks what is free: its context, and NCCL's buffers among `ranks`.

    vllm/v1/worker/gpu_worker.py, init_device: the ranks are joined before the snapshot (0.19.0 to 0.33.0). These bytes
    are no part of `non_torch`, which counts from that snapshot on.
    """
    if ranks == 1:
        return facts.calibration["context_before_check"]
    return facts.calibration["context_before_check_pcie" if _over_pcie(facts) else "context_before_check_nvlink"]


def _over_pcie(facts: Facts) -> bool:
    """Whether it is known that the cards are not joined by NVLink."""
    return facts.smallest.interconnect in ("pcie", "none")
