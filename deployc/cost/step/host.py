"""Seconds of one step on the host: scheduling, preparing the batch, launching. Arithmetic alone (see columns.py)."""

from __future__ import annotations

from deployc.cost.step.columns import Columns
from deployc.cost.step.shape import Shape
from deployc.types.speed import Constants


def host_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """The engine core's own thread; one step's work runs while the GPU is at the step before."""
    layer = step.full * constants.host_full + step.pieces * constants.host_piecewise
    launched = constants.host_eager if shape.eager else constants.host_launched
    layer = layer + step.launched * launched
    beside = constants.kernels[shape.kernel].host_layer
    beside = beside + (constants.host_adapter if shape.adapter_rank else 0.0)
    seconds = shape.layers * (layer + step.launched * beside)
    if shape.experts is not None:
        seconds = seconds + step.launched * shape.experts.layers * constants.host_experts
    batch = constants.host_step + constants.host_sequence * step.decodes
    return seconds + batch + constants.host_prompt * step.begun + constants.host_token * step.tokens
