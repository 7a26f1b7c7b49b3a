"""What one version of the engine does with formats of weights, read from `profiles/engines/formats.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Capability = tuple[int, int]
Method = Literal["packed", "gptq", "gptq_plain", "awq", "widened_fp8"]
"""Lists of kernels: compressed-tensors' integers in words, GPTQ's (symmetric ones of 4 and 8 bits; all others), AWQ's,
and fp8 where the card has no units for it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A quantized linear layer as a rank holds it, those that the engine joins as one added up."""

    bits: int
    group: int  # inputs that share a scale; 0 = all
    zero_points: bool
    act_order: bool  # its inputs were quantized in the order of their activation
    outputs: int
    inputs: int
    split: bool  # its inputs lie on several ranks


@dataclass(frozen=True, slots=True)
class PackedKernel:
    """A kernel that multiplies by packed weights, and what it takes."""

    name: str
    since: Capability
    before: Capability | None
    bits: tuple[int, ...]
    groups: tuple[int, ...]  # 0 = a scale a row; empty = any number of inputs but that
    zero_points: bool | None  # None = with or without
    act_order: Literal["yes", "no", "whole"]  # whole = where the inputs are not split
    dtypes: tuple[str, ...]  # of activations; empty = any
    tiles: tuple[tuple[int, int], ...]  # multiples of outputs and inputs, one pair of which must hold
    pads: bool  # where none holds it pads with zeros
    slow: bool  # written for other cards, or not tuned: the last resort

    def runs(self, layer: Layer, capability: Capability, dtype: str) -> bool:
        """Whether it takes layers of this format on this card, whatever their size."""
        on_card = self.since <= capability and (self.before is None or capability < self.before)
        grouped = layer.group in self.groups if self.groups else layer.group > 0
        pointed = self.zero_points is None or self.zero_points == layer.zero_points
        ordered = not layer.act_order or self.act_order == "yes" or (self.act_order == "whole" and not layer.split)
        typed = not self.dtypes or dtype in self.dtypes
        return on_card and layer.bits in self.bits and grouped and pointed and ordered and typed

    def fits(self, layer: Layer) -> bool:
        """Whether the layer's sizes are whole tiles."""
        return any(layer.outputs % out == 0 and layer.inputs % inner == 0 for out, inner in self.tiles)

    def padded(self, layer: Layer) -> tuple[int, int]:
        """Outputs and inputs as it holds them: the cheapest of its tiles, whole groups of inputs."""
        sizes = [
            (_up(layer.outputs, out), _up(layer.inputs, math.lcm(inner, layer.group or 1))) for out, inner in self.tiles
        ]
        return min(sizes, key=lambda size: (size[0] * size[1], sum(size)))


@dataclass(frozen=True, slots=True)
class Formats:
    """Of one version."""

    kernels: Mapping[Method, tuple[PackedKernel, ...]] = field(default_factory=dict)  # the first that takes a layer
    pads_since: str = ""  # the version from which on tiles are padded
    without_float16: tuple[str, ...] = ()  # model types that it refuses in float16
    with_code: tuple[str, ...] = ()  # model types known here whose config it reads by the repository's own code
    unsplit: tuple[str, ...] = ()  # methods of checkpoints that no tensor parallelism divides
    adapted_embeddings: tuple[str, ...] = ()  # architectures whose embeddings can have an adapter served beside them
    untuned_int8: tuple[tuple[int, int, int, int], ...] = ()  # capability, and the batches, first to last
    fp8_kv_needs_units: bool = False  # an fp8 KV cache does not start below the capability with fp8 units


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
