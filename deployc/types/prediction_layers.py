"""Layers that predict further tokens (multi-token prediction), by the names of their tensors.

A checkpoint may store them beside the model; an engine loads them for speculative decoding with them only. Names, as
vLLM 0.33.0 leaves them out (vllm/model_executor/models/): layers numbered after the last (utils.py,
get_spec_layer_idx_from_weight_name: DeepSeek V3, GLM-4.5, Kimi K2 …; minimax_m2.py), "mtp." (qwen3_next.py,
qwen3_5.py, nemotron_h.py, exaone_moe.py, longcat_flash.py), "model.mtp_…" (mimo.py, ernie45_moe.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from deployc.types.facts import TensorGroup
from deployc.types.groups import numbers, run

_NAMED = re.compile(r"(.*\.)?mtp[._]")
_NUMBERED = re.compile(r"((?:model\.|language_model\.)*layers\.)(\d+|\{[0-9,-]+\})(\..*)")


def split_prediction(tensors: Iterable[TensorGroup], layers: int) -> tuple[list[TensorGroup], list[TensorGroup]]:
    """The model's own tensors and those of prediction layers; `layers` is how many layers the model has.

    A group that runs over both, "model.layers.{0-61}.…" of 61 layers, is divided.
    """
    own: list[TensorGroup] = []
    ahead: list[TensorGroup] = []
    for tensor in tensors:
        if _NAMED.match(tensor.pattern):
            ahead.append(tensor)
            continue
        match = _NUMBERED.fullmatch(tensor.pattern)
        found = numbers(match[2].strip("{}")) if match else []
        if match is None or found[-1] < layers:
            own.append(tensor)
            continue
        for group, part in ((own, [n for n in found if n < layers]), (ahead, [n for n in found if n >= layers])):
            if part:
                count = tensor.count // len(found) * len(part)
                group.append(replace(tensor, pattern=f"{match[1]}{run(part)}{match[3]}", count=count))
    return own, ahead
