"""Whether the weights of a source are those that its config.json describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from deployc.diagnostics import Diagnostic, warning
from deployc.facts import faults
from deployc.facts.shapes import derivable, shapes, strict
from deployc.types.architecture import Architecture
from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor, compress, expand
from deployc.types.prediction_layers import split_prediction

_NEAR = 0.02  # of all elements: what releases of one family differ by (unused heads, keys that no layer reads)
_OUTPUT = ("lm_head.weight", "embed_out.weight")

Shape = tuple[int, ...]


def check_promise(
    config: Mapping[str, Any], arch: Architecture, tensors: Sequence[Tensor], where: str
) -> list[Diagnostic]:
    """The headers against the derived shapes of an unquantized checkpoint. Raises Fault DC222.

    Of a family whose names are exactly known every tensor must be there, and no other. Elsewhere releases name or join
    tensors differently: what has a derived name must have its size, and elements that differ by more than 2 % in all
    are a warning. Where nothing can be derived, the headers alone say what there is.
    """
    if not derivable(config):
        return []
    own, _ = split_prediction(compress(tensors), arch.layers)
    have = {name: group.shape for group in own for name in expand(group) if not _known_extra(name, arch)}
    promised, _ = split_prediction(shapes(config, arch), arch.layers)
    if strict(config):
        _same(promised, have, arch, where)
        return []
    _alike(promised, have, where)
    return _near(sum(group.elements for group in promised), sum(map(math.prod, have.values())), where)


def is_tied_output(name: str, arch: Architecture) -> bool:
    """Whether this is a stored copy of the embedding: a checkpoint may have it, engines load the embedding once."""
    return arch.tie_word_embeddings and name.endswith(_OUTPUT) and not name.startswith("mtp.")


def _known_extra(name: str, arch: Architecture) -> bool:
    """A tied output layer's copy, and rotary tables that old versions of transformers saved."""
    return is_tied_output(name, arch) or name.endswith("rotary_emb.inv_freq")


def _same(promised: Sequence[TensorGroup], have: Mapping[str, Shape], arch: Architecture, where: str) -> None:
    rest = dict(have)
    for group in promised:
        for name in expand(group):
            shape = rest.pop(name, None)
            if shape is None:
                raise faults.other_weights_than_config(where, f"{name} {list(group.shape)} is not in the weights.")
            if shape != group.shape:
                raise _other_shape(name, shape, group.shape, where)
    if rest:
        detail = f"{len(rest)} tensors are not those of {arch.name} with this config.json, e.g. {min(rest)}."
        raise faults.other_weights_than_config(where, detail)


def _alike(promised: Sequence[TensorGroup], have: Mapping[str, Shape], where: str) -> None:
    """Same name, same number of elements: a stacked tensor may lie the other way round."""
    for group in promised:
        for name in expand(group):
            shape = have.get(name, group.shape)
            if math.prod(shape) != math.prod(group.shape):
                raise _other_shape(name, shape, group.shape, where)


def _other_shape(name: str, shape: Shape, promised: Shape, where: str) -> faults.Fault:
    detail = f"{name} is {list(shape)}, and {list(promised)} by config.json."
    return faults.other_weights_than_config(where, detail)


def _near(promised: int, have: int, where: str) -> list[Diagnostic]:
    if abs(have - promised) <= _NEAR * promised:
        return []
    detail = f"{where}: the weights have {have:,} elements, and {promised:,} are expected by config.json."
    fix = "The weights themselves are planned with; check that both files are of one save."
    return [warning("DC229", "the weights are not of the size that config.json describes", detail, fix)]
