"""The shape of a tensor on one rank: what tensor and expert parallelism divide, replicate and pad."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployc.cost.parallel import padded_vocabulary
from deployc.cost.weights.names import COLUMN, Name, read
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import Facts, TensorGroup

INPUTS_FIRST = ("qweight", "qzeros", "scales")
"""Parameters [inputs or groups, outputs]; all others are [outputs, inputs or groups]."""
OF_INPUTS = ("g_idx", "weight_g_idx")
OF_OUTPUTS = ("bias", "SCB")
OF_ELEMENTS = ("absmax", "weight.absmax", "nested_absmax", "weight.nested_absmax")


WHOLE_TOWERS = ("gemma3n", "gemma4")
"""Encoders of transformers itself (AutoModel.from_config), whole on every rank: models/{gemma3n,gemma4}_mm.py."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """How a model is spread. `experts` = ranks over which routed experts are divided: TP x DP, whole or each cut."""

    tensor: int = 1
    experts: int = 1
    whole_experts: bool = False  # expert parallelism: each rank has some of them, whole
    towers: int = 1  # ranks over which towers are divided
    act_order: bool = False  # GPTQ desc_act: every rank keeps all scales of row-parallel layers

    @classmethod
    def of(cls, facts: Facts, choices: Choices) -> Ranks:
        """As vllm/model_executor/layers/fused_moe/config.py, FusedMoEParallelConfig.make, flattens them (0.25.1)."""
        tensor = choices.tensor_parallel_size.value
        spread = tensor * choices.data_parallel_size.value
        towers = 1 if facts.model.architecture.model_type in WHOLE_TOWERS else tensor
        act_order = bool(facts.model.quantization.get("desc_act"))
        return cls(tensor, spread, choices.expert_parallel.value, towers, act_order)


def shard(tensor: TensorGroup, architecture: Architecture, tensor_parallel_size: int) -> tuple[int, ...]:
    """The shape of one tensor of a group on one rank of tensor parallelism alone."""
    ranks = Ranks(tensor_parallel_size, tensor_parallel_size, towers=tensor_parallel_size)
    return shape_on_rank(tensor, read(tensor.pattern), architecture, {}, ranks)


def shape_on_rank(
    tensor: TensorGroup, name: Name, architecture: Architecture, config: Mapping[str, Any], ranks: Ranks
) -> tuple[int, ...]:
    """The shape of one tensor of a group on the fullest rank; of numbered experts, of those that are cut, not moved.

    `config` is the language model's part of config.json.
    """
    shape = tensor.shape or (1,)
    if name.routed and name.module not in ("gate", "router"):
        return _expert(shape, name, ranks)
    ways = ranks.towers if name.tower else ranks.tensor
    axis = _axis(shape, name)
    if (ways == 1 and name.role != "vocabulary") or axis is None:
        return shape
    if name.role == "row" and ranks.act_order and name.parameter in ("scales", "qzeros"):
        return shape
    return (*shape[:axis], _part(shape[axis], name, architecture, config, ways), *shape[axis + 1 :])


def _axis(shape: tuple[int, ...], name: Name) -> int | None:
    """Which dimension is divided; None = none."""
    outputs = name.role not in ("row", "replicated")
    if name.role == "replicated" or math.prod(shape) == 1 or name.parameter == "weight_shape":
        return None
    if name.parameter in OF_ELEMENTS or (name.parameter == "weight" and shape[-1] == 1 and len(shape) == 2):
        return 0  # bitsandbytes: one long row of packed elements
    if name.parameter in OF_INPUTS:
        return None if outputs else 0
    if name.parameter in OF_OUTPUTS or len(shape) == 1:
        return 0 if outputs else None
    axis = int(outputs == (name.parameter in INPUTS_FIRST))
    return axis if shape[axis] > 1 else None


def _part(size: int, name: Name, architecture: Architecture, config: Mapping[str, Any], ways: int) -> int:
    if name.role == "vocabulary":
        return -(-padded_vocabulary(size) // ways)
    if name.role == "keys":
        heads = _kv_heads(size, architecture)
        return math.ceil(size * max(1, -(-heads // ways)) / heads)
    if name.role == "joined":
        heads, kv = architecture.heads, architecture.kv_heads
        return math.ceil(size * (heads / ways + 2 * max(1, -(-kv // ways))) / (heads + 2 * kv))
    if name.role == "groups":
        groups, state = _mamba_groups(config)
        more = 2 * state * (max(1, groups // ways) - groups / ways) if groups % ways else 0
        return math.ceil(size / ways + more)
    return -(-size // ways)


def _kv_heads(rows: int, architecture: Architecture) -> int:
    """Those of the layers with that many rows: layers of one model may differ in heads and head size."""
    alike = (c.kv_heads for c in architecture.caches if c.kv_heads and c.kv_heads * c.head_dim == rows)
    return next(alike, architecture.kv_heads)


def _mamba_groups(config: Mapping[str, Any]) -> tuple[int, int]:
    """Groups that share B and C, and the state size: those that do not divide are replicated, one a rank
    (vllm/model_executor/layers/mamba/mamba_utils.py, extra_groups_for_head_shards)."""
    groups = next((config[key] for key in ("mamba_n_groups", "n_groups", "mamba_ngroups") if key in config), 0)
    state = next((config[key] for key in ("mamba_d_state", "ssm_state_size") if key in config), 0)
    return (groups, state) if type(groups) is int and type(state) is int else (0, 0)


def _expert(shape: tuple[int, ...], name: Name, ranks: Ranks) -> tuple[int, ...]:
    """Cut along the intermediate size; stacked ones [experts, ...] are moved whole under expert parallelism."""
    if ranks.experts == 1:
        return shape
    if ranks.whole_experts:
        return shape if name.experts else (-(-shape[0] // ranks.experts), *shape[1:])
    lead = 0 if name.experts else 1
    column = name.module in COLUMN
    one = shape[lead:]
    if name.experts:
        as_linear = Name(name.module, name.parameter, "column" if column else "row", (), 0, False, False, "", "")
        axis = _axis(one, as_linear)
    else:  # either dimension may hold the outputs: the product is what counts
        axis = None if name.parameter == "bias" and not column else 0
    if axis is None or not one:
        return shape
    axis += lead
    return (*shape[:axis], -(-shape[axis] // ranks.experts), *shape[axis + 1 :])
