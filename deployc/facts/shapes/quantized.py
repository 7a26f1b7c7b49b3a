"""The tensors of a quantized checkpoint from those of its 16-bit model and `quantization_config`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from deployc.facts.shapes.recipe import Recipe, recipe
from deployc.types.architecture import Architecture
from deployc.types.facts import TensorGroup
from deployc.types.groups import compress, expand
from deployc.types.scheme import Scheme
from deployc.types.tower_layers import TOWER

_ROUTER = re.compile(r"\.(gate|wg|router|shared_expert_gate)\.")
"""Linear layers that no method quantizes, or whose class is none (vllm/model_executor/models/*_moe.py)."""
_NO_LINEAR = re.compile(r"embed|norm|position")
_STACKED = re.compile(r"\.experts\.(gate_up_proj|down_proj)$")


def quantized(groups: Iterable[TensorGroup], config: Mapping[str, Any], arch: Architecture) -> tuple[TensorGroup, ...]:
    """What the checkpoint holds: `groups` are those of the model at 16 bit. Raises Fault DC209.

    A linear layer's `weight` [out, in] becomes what its format stores; embeddings, norms, routers and what the config
    leaves out stay. Experts stacked in one tensor are as many linear layers.
    """
    how = recipe(config)
    made = [part for group in groups for part in _group(group, how, arch)]
    return tuple(sorted(made, key=lambda g: (g.pattern, g.dtype, g.shape)))


def _group(group: TensorGroup, how: Recipe, arch: Architecture) -> Iterator[TensorGroup]:
    stacked = _STACKED.search(group.pattern)
    if stacked and len(group.shape) == 3:
        yield from _stacked(group, how, arch, up=stacked[1] == "gate_up_proj")
        return
    if how.experts_only or not _is_linear(group) or (TOWER.search(group.pattern) and not how.towers):
        yield group
        return
    if not how.numbered:
        yield from _as(group, how.scheme(next(expand(group)).removesuffix(".weight")))
        return
    decided = [(name, how.scheme(name.removesuffix(".weight"))) for name in expand(group)]
    order = list(dict.fromkeys(scheme for _, scheme in decided))
    for scheme, members in groupby(sorted(decided, key=lambda d: order.index(d[1])), key=lambda d: d[1]):
        for part in compress((name, group.dtype, group.shape) for name, _ in members):
            yield from _as(part, scheme)


def _is_linear(group: TensorGroup) -> bool:
    outside = _NO_LINEAR.search(group.pattern) or _ROUTER.search(group.pattern)
    return group.pattern.endswith(".weight") and len(group.shape) == 2 and not outside


def _as(group: TensorGroup, scheme: Scheme | None) -> Iterator[TensorGroup]:
    if scheme is None:
        yield group
        return
    module = group.pattern.removesuffix(".weight")
    for parameter, dtype, shape in scheme.stored(*group.shape):
        yield TensorGroup(f"{module}.{parameter}", dtype, shape, group.count)


def _stacked(group: TensorGroup, how: Recipe, arch: Architecture, up: bool) -> Iterator[TensorGroup]:
    """[experts, outputs, inputs], or the other way round. gpt-oss names its blocks of 32 elements and their scales."""
    scheme = how.scheme(next(expand(group)))
    if scheme is None:
        yield group
        return
    count, *sides = group.shape
    inputs = arch.hidden_size if up else sum(sides) - arch.hidden_size
    outputs = sum(sides) - inputs
    if how.experts_only:
        yield TensorGroup(f"{group.pattern}_blocks", "U8", (count, outputs, inputs // 32, 16), group.count)
        yield TensorGroup(f"{group.pattern}_scales", "U8", (count, outputs, inputs // 32), group.count)
        return
    for parameter, dtype, shape in scheme.stored(outputs, inputs):
        yield TensorGroup(f"{group.pattern}.{parameter}", dtype, (count, *shape), group.count)
