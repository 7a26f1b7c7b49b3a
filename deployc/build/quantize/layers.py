"""Which layers are quantized, and what config.json says of it, from the tensors' names and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from deployc.build import faults
from deployc.build.weights.layout import FLOATS, STORED
from deployc.cost.weights import is_embedding, is_named, is_quantized
from deployc.cost.weights.formats import SCHEMES
from deployc.diagnostics import Diagnostic
from deployc.types.bundle import Recipe
from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
"""Layers that vLLM runs as one matrix (`packed_modules_mapping` of its models): quantized together or not at all."""


def quantized(tensors: Iterable[Tensor], ignore: tuple[str, ...]) -> list[str]:
    """Names of the tensors that become int8, by the rule that the prediction of memory uses."""
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
    """The modules whose matrix stays at 16 bit, embeddings apart; lm_head always, be it tied or not."""
    taken = set(quantized(tensors, ignore))
    matrices = (
        name
        for name, dtype, shape in tensors
        if name.endswith(".weight") and len(shape) == 2 and not is_embedding(TensorGroup(name, dtype, shape))
    )
    return sorted({name.removesuffix(".weight") for name in matrices if name not in taken} | {"lm_head"})


def quantization_config(alone: Sequence[str]) -> dict[str, Any]:
    """`quantization_config` of config.json, as compressed-tensors 0.17 to 0.20 write scheme W8A8 (`model_dump`).

    Fields that only one of those versions knows are left to their defaults; so is `version`, which names that library.
    """
    shared = {"num_bits": 8, "type": "int", "symmetric": True, "group_size": None}
    group = {
        "targets": ["Linear"],
        "weights": {**shared, "strategy": "channel", "dynamic": False},
        "input_activations": {**shared, "strategy": "token", "dynamic": True},
        "output_activations": None,
        "format": None,
    }
    return {
        "config_groups": {"group_0": group},
        "quant_method": "compressed-tensors",
        "kv_cache_scheme": None,
        "format": "int-quantized",
        "quantization_status": "compressed",
        "global_compression_ratio": None,
        "ignore": list(alone),
    }


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
    """Parents of fused layers of which `alone` holds some and not all, with the names that it holds."""
    left, known = set(alone), set(modules)
    for parent in sorted({module.rpartition(".")[0] for module in known}):
        for names in FUSED:
            there = [name for name in names if f"{parent}.{name}" in known]
            held = [name for name in there if f"{parent}.{name}" in left]
            if held and len(held) < len(there):
                yield parent, held
