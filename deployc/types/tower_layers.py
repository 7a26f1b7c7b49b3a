"""Encoders by the names of their tensors, and what of a vision tower the engine leaves in the file.

vLLM 0.19.0 and 0.33.0 (vllm/model_executor/models/): siglip.py makes no pooling head (`use_head` false) for models that
generate; llava.py (init_vision_tower_for_llava), llava_next.py and llava_onevision.py make layers up to the deepest
one that `vision_feature_layer` reads, and no norm after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from deployc.types.facts import TensorGroup
from deployc.types.groups import numbers, run

TOWER = re.compile(r"(?:^|[._])(?:visual|vision|audio|image|speech|projector|multi_modal|aligner|patch_merger)[^.]*\.")
"""Found in the name of every tensor of an encoder, or of what joins one to the language model."""
_READ: Mapping[str, int] = {"llava": -2, "llava_next": -2, "llava_onevision": -1}
"""Layer that is read where `vision_feature_layer` is absent: documented defaults of the configuration classes."""
_TOWER = "vision_tower."
_HEAD = re.compile(r"vision_tower\.(vision_model\.)?head\.")
_LAYER = re.compile(r"(vision_tower\.(?:\w+\.)*layers\.)(\d+|\{[0-9,-]+\})(\..*)")


def without_unread(tensors: Iterable[TensorGroup], config: Mapping[str, Any]) -> list[TensorGroup]:
    """The tensors without those of a tower that the engine does not load; `config` is config.json.

    A group that runs over layers of both kinds is cut.
    """
    kept = [tensor for tensor in tensors if not _HEAD.match(tensor.pattern)]
    if config.get("model_type") not in _READ:
        return kept
    kept = [tensor for tensor in kept if not (_TOWER in tensor.pattern and ".post_layernorm." in tensor.pattern)]
    found = [(tensor, _LAYER.fullmatch(tensor.pattern)) for tensor in kept]
    total = max((numbers(match[2].strip("{}"))[-1] + 1 for _, match in found if match), default=0)
    depth = _depth(config, total)
    return [cut for tensor, match in found if (cut := _cut(tensor, match, depth)) is not None]


def _depth(config: Mapping[str, Any], total: int) -> int:
    """Layers up to the deepest that is read; -1 is the last. All of them where the key says nothing of the kind."""
    said = config.get("vision_feature_layer", _READ[str(config["model_type"])])
    read = [layer for layer in (said if isinstance(said, list) else [said]) if type(layer) is int]
    depths = [total + layer + 1 if layer < 0 else layer for layer in read]
    return max((depth for depth in depths if 0 < depth <= total), default=total)


def _cut(tensor: TensorGroup, match: re.Match[str] | None, depth: int) -> TensorGroup | None:
    if match is None:
        return tensor
    layers = numbers(match[2].strip("{}"))
    left = [layer for layer in layers if layer < depth]
    if not left:
        return None
    pattern = f"{match[1]}{run(left)}{match[3]}"
    return replace(tensor, pattern=pattern, count=tensor.count // len(layers) * len(left))
