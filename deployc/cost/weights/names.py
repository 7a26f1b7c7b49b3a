"""What a tensor's name says: the module it belongs to, the parameter it is, the layers and experts it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from deployc.types.groups import numbers
from deployc.types.scheme import BESIDE
from deployc.types.tower_layers import TOWER

Role = Literal["vocabulary", "column", "row", "keys", "joined", "groups", "heads", "replicated"]
"""How tensor parallelism treats a module. keys: k and v, by KV heads. joined: q, k and v in one matrix. groups: the
inputs of a Mamba 2 layer, of which B and C go by groups. heads: one value a head. replicated: also whatever has no
name here, which makes the figure too large rather than too small."""

EMBEDDINGS = ("embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in", "embeddings")
OUTPUTS = ("lm_head", "embed_out", "output")
COLUMN = (
    "q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "q_b_proj",
    "kv_b_proj", "qkv", "Wqkv", "wqkv", "c_attn", "query_key_value", "W_pack", "fc1", "linear_fc1", "linear_1", "c_fc",
    "dense_h_to_4h", "in_proj", "in_proj_qkvz", "in_proj_ba", "in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a",
    "conv1d", "conv", "dt_proj", "input_linear", "mlp.0", "per_layer_model_projection", "linear_left",
)  # fmt: skip
ROW = (
    "o_proj", "down_proj", "w2", "wo", "out_proj", "fc2", "linear_fc2", "linear_2", "c_proj", "dense",
    "dense_4h_to_h", "x_proj", "output_linear", "proj", "mlp.2", "linear_right",
)  # fmt: skip
"""ColumnParallelLinear and RowParallelLinear (or their merged kinds) of vllm/model_executor/models/*.py, 0.25.1."""
KEYS = ("k_proj", "v_proj")
JOINED = ("qkv_proj", "Wqkv", "wqkv", "query_key_value", "c_attn", "W_pack")
HEADS = ("A_log", "D", "dt_bias", "sinks")
STACKED = ("input_linear", "output_linear")
"""Routed experts of Granite, in one tensor each."""
FUSED = {
    "q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj", "w1": "gate_up_proj", "w3": "gate_up_proj", "w2": "down_proj",
    "q_a_proj": "fused_qkv_a_proj", "kv_a_proj_with_mqa": "fused_qkv_a_proj", "in_proj_qkv": "in_proj_qkvz",
    "in_proj_z": "in_proj_qkvz", "in_proj_b": "in_proj_ba", "in_proj_a": "in_proj_ba",
}  # fmt: skip
"""Modules that the engine holds as one matrix: `packed_modules_mapping` of its models."""
PARAMETERS = BESIDE | {"weight", "bias", "qweight", "weight_packed", "e_score_correction_bias"}
"""What the last part of a name may be; else it is a bare parameter's own name."""
_JOINTS = ("_blocks", "_scales", "_bias")
"""Parameters of stacked experts, joined to the module's name by an underscore: gate_up_proj_blocks."""
_NUMBERS = re.compile(r"\{[0-9,-]*\}|(?<=\.)[0-9]+(?=\.)")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\{[0-9,-]*\}|[0-9]+)(?:\.|$)")
_EXPERTS = re.compile(r"\.experts(?:\.(\{[0-9,-]*\}|[0-9]+))?\.")


@dataclass(frozen=True, slots=True)
class Name:
    """A tensor's name, read."""

    module: str  # "q_proj"
    parameter: str  # "weight", "absmax" …; that of a bare parameter (A_log) is its own name
    role: Role
    layers: tuple[int, ...]  # of the decoder; empty outside it
    experts: int  # routed experts that the pattern numbers; 0 = none, or stacked in one tensor
    routed: bool  # whether it belongs to routed experts
    tower: bool  # of a vision or audio encoder, or of what joins one to the language model
    held_as: str  # name with fused modules joined and experts stacked, its parameter after "|"
    kind: str  # the same without numbers: what tensors of all layers have in common

    @property
    def of(self) -> str:
        """The module's kind, without the parameter."""
        return self.kind.rsplit("|", 1)[0]


@lru_cache(maxsize=4096)
def read(pattern: str) -> Name:
    """The name of a TensorGroup."""
    parts = pattern.split(".")
    end = len(parts)
    if "quant_state" in parts:
        end = parts.index("quant_state")
    while end > 1 and parts[end - 1] in PARAMETERS:
        end -= 1
    if parts[end - 1] == "linear" and parts[end - 2] in (*COLUMN, *ROW):  # a layer wrapped to be clipped
        parts.pop(end - 1)
        end -= 1
    module, parameter = parts[end - 1], ".".join(parts[end:]) or parts[-1]
    if end == len(parts):
        module, parameter = _split_joint(module)
    expert = _EXPERTS.search(pattern)
    tower = bool(TOWER.search(pattern))
    layer = None if tower else _LAYER.search(pattern)
    named = ".".join(parts[end - 2 : end]) if module.isdigit() else module
    numbered = bool(expert and expert[1])
    held = pattern if not numbered else _EXPERTS.sub(".experts.", pattern, count=1)
    held = held.rsplit(module, 1)[0] + FUSED.get(module, module) + "|" + parameter
    return Name(
        module=named,
        parameter=parameter,
        role=_role(named, parts[: end - 1], tower),
        layers=tuple(numbers(layer[1].strip("{}"))) if layer else (),
        experts=len(numbers(expert[1].strip("{}"))) if numbered and expert else 0,
        routed=bool(expert) or (module in STACKED and "block_sparse_moe" in parts),
        tower=tower,
        held_as=held,
        kind=without_numbers(held),
    )


def without_numbers(held: str) -> str:
    """What the names of all layers' tensors have in common."""
    return _NUMBERS.sub("#", held)


def _split_joint(module: str) -> tuple[str, str]:
    for joint in _JOINTS:
        if module.endswith(joint) and module.removesuffix(joint) in (*COLUMN, *ROW):
            return module.removesuffix(joint), joint[1:]
    return module, "weight" if module in (*COLUMN, *ROW) else module


def _role(module: str, around: list[str], tower: bool) -> Role:
    if module in HEADS:
        return "heads"
    if not tower and (module in (*EMBEDDINGS, *OUTPUTS) or module == "embed_tokens_per_layer"):
        return "vocabulary"
    if "indexer" in around or (module == "proj" and around[-1:] != ["attn"]) or (module == "conv" and tower):
        return "replicated"
    if not tower and module in KEYS:
        return "keys"
    if not tower and module in JOINED:
        return "joined"
    if module in ("in_proj", "conv1d") and around[-1:] and around[-1] in ("mamba", "mixer"):
        return "groups"
    return "column" if module in COLUMN else "row" if module in ROW else "replicated"
