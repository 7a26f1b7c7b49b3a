"""Which layers are quantized, and which are named as left alone, from the tensors' names and shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from deployc.build import faults
from deployc.build.weights.layout import FLOATS, STORED
from deployc.cost.weights import is_embedding, is_named, is_quantized
from deployc.cost.weights.formats import SCHEMES
from deployc.diagnostics import Diagnostic
from deployc.types.bundle import Recipe
from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

EXPERTS = re.compile(r"(.+\.experts)\.")
LAYER = re.compile(r"layers\.[0-9]+\.")
FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
"""Layers that vLLM runs as one matrix (`packed_modules_mapping` of its models): quantized together or not at all."""


def quantized(tensors: Iterable[Tensor], ignore: tuple[str, ...]) -> list[str]:
    """Names of the tensors that are quantized, by the rule that the prediction of memory uses."""
    return [
        name
        for name, dtype, shape in tensors
        if name.endswith(".weight") and dtype in FLOATS and is_quantized(TensorGroup(name, dtype, shape), ignore)
    ]


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


def check(model: str, tensors: Sequence[Tensor], ignore: tuple[str, ...]) -> Iterator[Diagnostic]:
    """DC282-DC284: what `ignore` must not do."""
    taken = quantized(tensors, ignore)
    if not taken:
        yield faults.nothing_to_quantize(model)
    for name in ignore:
        if name != "lm_head" and not any(is_named(tensor, name) for tensor, _, _ in tensors):
            yield faults.ignores_nothing(name)
    modules = [name.removesuffix(".weight") for name in quantized(tensors, ())]
    kept = {name.removesuffix(".weight") for name in taken}
    for parent, names in _split([m for m in modules if m not in kept], modules):
        yield faults.split_layers(parent, names)
        break  # every layer would say the same


def _split(alone: Iterable[str], modules: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """What the engine runs as one and `alone` holds in part: the module around it, with the names that it holds."""
    left, known = set(alone), set(modules)
    for parent in sorted({module.rpartition(".")[0] for module in known}):
        for names in FUSED:
            there = [name for name in names if f"{parent}.{name}" in known]
            held = [name for name in there if f"{parent}.{name}" in left]
            if held and len(held) < len(there):
                yield parent, held
    routed: dict[str, list[str]] = {}
    for module in sorted(known):
        if match := EXPERTS.match(module):
            routed.setdefault(match[1], []).append(module)
    for parent, members in routed.items():
        held = [member.removeprefix(f"{parent}.") for member in members if member in left]
        if held and len(held) < len(members):
            yield parent, [*held[:3], "…"] if len(held) > 3 else held
