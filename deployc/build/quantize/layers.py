"""Which layers are quantized, and which are named as left alone, from the tensors' names and shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from deployc.build.weights.layout import STORED
from deployc.cost.weights import is_embedding
from deployc.cost.weights.formats import SCHEMES
from deployc.rules.ignored import EXPERTS, quantized
from deployc.types.bundle import Recipe
from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

LAYER = re.compile(r"layers\.[0-9]+\.")


def schemes(tensors: Iterable[Tensor], recipe: Recipe) -> dict[str, Scheme]:
    """The scheme of every tensor that is quantized, its scales in the model's dtype."""
    if recipe.weights == "none":
        return {}
    scheme = replace(SCHEMES[recipe.weights], scale_dtype=STORED[recipe.dtype])
    if scheme.group:
        scheme = replace(scheme, group=recipe.group_size)
    return dict.fromkeys(quantized(tensors, recipe.ignore), scheme)


def left_alone(tensors: Sequence[Tensor], ignore: tuple[str, ...]) -> list[str]:
    """The modules whose matrix stays at 16 bit, embeddings apart; lm_head always, be it tied or not.

    Experts that lie in one tensor have no names of their own: the engine asks for those of `experts.0.…` (vLLM 0.32,
    compressed_tensors_moe.py, get_moe_method), which a pattern answers; it is matched from the name's beginning, which
    the engine may call otherwise than the checkpoint does.
    """
    taken = set(quantized(tensors, ignore))
    matrices = (
        name
        for name, dtype, shape in tensors
        if name.endswith(".weight") and len(shape) == 2 and not is_embedding(TensorGroup(name, dtype, shape))
    )
    names = {name.removesuffix(".weight") for name in matrices if name not in taken} | {"lm_head"}
    return sorted(names | {_pattern(module) for module in stacked(tensors)})


def stacked(tensors: Iterable[Tensor]) -> list[str]:
    """The `…experts` modules that hold all their experts' matrices in tensors of three dimensions."""
    found = (EXPERTS.match(name) for name, _, shape in tensors if len(shape) == 3)
    return sorted({match[1] for match in found if match})


def _pattern(module: str) -> str:
    """A pattern of all that is within a module, whatever stands before its layer's number."""
    tail = module[match.start() :] if (match := LAYER.search(module)) else module
    return rf"re:(.*\.)?{re.escape(tail)}\..*"
