"""What the names of an adapter's tensors say, and which tensor of the model a module of theirs is.

peft writes `base_model.model.<module>.<what>` (peft 0.21.2, `get_peft_model_state_dict`); a module that it wraps twice
has `base_layer` in its name once for each layer further inside.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Literal

PREFIX = "base_model.model."

Role = Literal["A", "B", "bias", "embedding_A", "embedding_B", "magnitude", "tokens", "base", "whole", "original"]

_ROLES: tuple[tuple[Role, str], ...] = (
    ("A", r"(?P<module>.+)\.lora_A\.weight"),
    ("B", r"(?P<module>.+)\.lora_B\.weight"),
    ("bias", r"(?P<module>.+)\.lora_B\.bias"),
    ("embedding_A", r"(?P<module>.+)\.lora_embedding_A"),
    ("embedding_B", r"(?P<module>.+)\.lora_embedding_B"),
    ("magnitude", r"(?P<module>.+)\.lora_magnitude_vector(?:\.weight)?"),
    ("tokens", r"(?P<module>.+)\.token_adapter\.trainable_tokens_delta"),
    ("base", r"(?P<module>.+?)(?:\.token_adapter)?\.base_layer\.(?P<parameter>weight|bias)"),
    ("original", r"(?P<module>.+)\.original_module\.(?P<parameter>[^.]+)"),
    ("whole", r"(?P<module>.+)\.modules_to_save\.(?P<parameter>[^.]+)"),
    ("whole", r"(?P<module>.+)\.(?P<parameter>[^.]+)"),
)
_PATTERNS = [(role, re.compile(pattern)) for role, pattern in _ROLES]

_RENAMED = (
    (re.compile(r"\.mlp\."), ".block_sparse_moe."),
    (re.compile(r"^transformer\."), ""),
    (re.compile(r"^model\.language_model\."), "language_model.model."),
    (re.compile(r"^model\.language_model\."), "model."),
    (re.compile(r"^model\.(?=visual\.|vision_tower\.|multi_modal_projector\.)"), ""),
)
"""How transformers 5 names modules against their checkpoints (transformers 5.24.0, conversion_mapping.py: mixtral, the
base model's prefix, llava, qwen2_vl); taken only where the checkpoint has such a tensor."""


@dataclass(frozen=True, slots=True)
class Item:
    """A tensor of an adapter: of which module, what it is there, and under how many `base_layer` it lies."""

    name: str
    module: str
    role: Role
    parameter: str
    depth: int


def read(name: str) -> Item | None:
    """A tensor's name, read; None for one that peft does not write."""
    if not name.startswith(PREFIX):
        return None
    rest = name.removeprefix(PREFIX)
    for role, pattern in _PATTERNS:
        if match := pattern.fullmatch(rest):
            module = match["module"]
            known = (
                "lora_" not in module and ".token_adapter" not in module and (role != "whole" or "lora_" not in rest)
            )
            depth = module.count(".base_layer")
            parameter = match.groupdict().get("parameter") or "weight"
            return Item(name, module.replace(".base_layer", ""), role, parameter, depth) if known else None
    return None


def place(tensor: str, base: Container[str]) -> str | None:
    """The checkpoint's name of a model's tensor as transformers names it; None where it has none."""
    if tensor in base:
        return tensor
    renamed = (pattern.sub(other, tensor) for pattern, other in _RENAMED)
    return next((name for name in renamed if name in base), None)


def is_end(listed: str, module: str) -> bool:
    """Whether a name of a list is the module, or the end of its name (peft, `check_target_module_exists`)."""
    return module == listed or module.endswith(f".{listed}")


def named(listed: Iterable[str], module: str) -> bool:
    """Whether one of the list is."""
    return any(is_end(one, module) for one in listed)
