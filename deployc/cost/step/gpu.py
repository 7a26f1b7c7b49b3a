"""Seconds of one step on the GPU: products, attention, experts, logits, what lies between kernels.

Arithmetic alone: each field of `Columns` may be one step's or an array of steps (see columns.py).
"""

from __future__ import annotations

import math

from deployc.cost.step.columns import Columns
from deployc.cost.step.shape import Shape
from deployc.types.speed import Constants

TILE, PROCESSORS = 128, 132
"""Outputs of a tile, and tiles at once: the multiprocessors of an H100 or H200, and about those of an RTX 4090."""
ROOF = 4.0
"""Exponent of the smooth maximum of operations and bytes in a product: near the ridge it takes somewhat longer."""


def gpu_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """All parts of a step in sequence."""
    quantized = constants.kernels[shape.kernel]
    fixed = constants.step + shape.layers * (constants.layer + quantized.layer)
    return (
        fixed
        + products_seconds(shape, step.rows, constants)
        + attention_seconds(shape, step, constants)
        + _experts(shape, step, constants)
        + _logits(shape, step, constants)
        + constants.moved * _moved(shape, step)
        + _adapter(shape, step, constants)
        + _reduce(shape, step, constants)
    )


def products_seconds(shape: Shape, rows: float, constants: Constants) -> float:
    """Each product is bound by operations or by reading its weights."""
    seconds = shape.rest / (shape.bandwidth * constants.kernels["bf16"].stream)
    for product in shape.products:
        name = shape.kernel if product.quantized else "bf16"
        peak, kernel = shape.kernel_peak if product.quantized else shape.peak, constants.kernels[name]
        edges = (1 + constants.columns_lost / product.outputs) * (1 + constants.columns_lost / product.inputs)
        operations = 2 * (rows + constants.rows_lost) * product.weights * edges
        reading = (
            product.bytes / (shape.bandwidth * kernel.stream) * (1 + constants.wave_lost * _unused(product.outputs))
        )
        seconds = seconds + smooth_max(operations / (peak * kernel.compute), reading, ROOF)
    return seconds


def _unused(outputs: int) -> float:
    """Part of all waves that the last one leaves empty; tiles of less than one wave are split along the inputs."""
    waves = outputs / (TILE * PROCESSORS)
    return math.ceil(waves) / waves - 1 if waves > 1 else 0.0


def attention_seconds(shape: Shape, step: Columns, constants: Constants) -> float:
    """Decoding reads the cache; a prompt multiplies."""
    decoding = step.kv_bytes / constants.kv_stream + step.kv_bytes_mixed / constants.kv_stream_mixed
    return decoding / shape.bandwidth + step.attention / (shape.peak * constants.attention)


def _experts(shape: Shape, step: Columns, constants: Constants) -> float:
    """Experts that are touched are read; each rounds its tokens up."""
    experts = shape.experts
    if experts is None:
        return 0.0
    rows = step.rows * experts.per_token + step.touched * constants.expert_rows
    operations = 2 * experts.weights * experts.layers * rows / (shape.kernel_peak * constants.expert_compute)
    reading = experts.bytes * step.touched / experts.count / (shape.bandwidth * constants.expert_stream)
    return smooth_max(operations, reading, ROOF) + experts.layers * constants.expert_layer


def _logits(shape: Shape, step: Columns, constants: Constants) -> float:
    """The output layer is 16 bit; the sampler goes over float32 logits."""
    inputs, outputs = shape.head
    kernel = constants.kernels["bf16"]
    operations = 2 * (step.sampled + constants.rows_lost) * inputs * outputs / (shape.peak * kernel.compute)
    reading = inputs * outputs * shape.element / (shape.bandwidth * kernel.stream)
    sampling = constants.sampler * step.sampled * shape.vocabulary * 4 / shape.bandwidth
    return smooth_max(operations, reading, ROOF) + sampling


def _moved(shape: Shape, step: Columns) -> float:
    """Seconds to move a step's activations once at the full bandwidth."""
    return step.rows * shape.moved * shape.element * shape.layers / shape.bandwidth


def _adapter(shape: Shape, step: Columns, constants: Constants) -> float:
    """Two more small products beside each (shrink, expand), and their activations once more."""
    if not shape.adapter_rank:
        return 0.0
    return shape.layers * constants.adapter_layer + constants.adapter_moved * _moved(shape, step)


def _reduce(shape: Shape, step: Columns, constants: Constants) -> float:
    """Two all-reduces a layer; a ring sends 2 x (n - 1) / n of the activations."""
    ranks = shape.tensor_parallel_size
    if ranks == 1:
        return 0.0
    sent = step.rows * shape.hidden_size * shape.element * 2 * (ranks - 1) / ranks
    return 2 * shape.layers * (constants.reduce_latency + sent / (shape.link * constants.reduce_bandwidth))


def smooth_max(one: float, other: float, sharpness: float) -> float:
    """About the larger of the two, somewhat more where they are near each other."""
    total: float = (one**sharpness + other**sharpness) ** (1 / sharpness)
    return total
