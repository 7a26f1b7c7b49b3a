"""Seconds of one step on the host: scheduling, preparing the batch, launching. Arithmetic alone (see columns.py)."""

from __future__ import annotations

from deployc.cost.step.columns import Columns
from deployc.cost.step.shape import Shape
from deployc.types.speed import Constants


def batch_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """Before the first kernel is launched: the last outcome is taken in, a batch is formed and made ready."""
    fixed = constants.host_step_v1 if shape.runner == "V1" else constants.host_step
    of_batch = constants.host_sequence * step.decodes + constants.host_prompt * step.begun
    return fixed + of_batch + constants.host_token * step.tokens


def launch_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """Launching the kernels, or the graphs that hold them; the GPU works meanwhile."""
    launched = constants.host_eager if shape.eager else constants.kernels[shape.kernel].host_layer
    launched = launched + (constants.host_adapter if shape.adapter_rank else 0.0)
    layer = step.full * constants.host_full + step.pieces * constants.host_piecewise
    seconds = shape.layers * (layer + step.launched * launched)
    if shape.experts is not None:
        seconds = seconds + step.launched * shape.experts.layers * constants.host_experts
    return seconds
