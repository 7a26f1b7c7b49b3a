"""Tensor shapes from config.json alone, for a source without weights, or to compare with those it has.

In: config.json and its `Architecture`. Out: the tensors of its checkpoint as `TensorGroup`s, made from the rows of
`dense`, `sparse`, `hybrid` and `multimodal` without writing out a name for each: 100 layers of 256 experts take about
a millisecond. A quantized checkpoint's follow from those of its 16-bit model (`quantized`). The names and shapes are
those of the families' released checkpoints; summed they give the published parameter counts, which the tests hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deployc.facts import faults
from deployc.facts.architecture import WHOLES
from deployc.facts.architecture.classes import defaults
from deployc.facts.shapes.dense import DENSE
from deployc.facts.shapes.family import Family, Rows
from deployc.facts.shapes.hybrid import HYBRID
from deployc.facts.shapes.multimodal import WRAPPERS, Tower, Wrapper
from deployc.facts.shapes.part import Part, Sizes, within
from deployc.facts.shapes.quantized import quantized
from deployc.facts.shapes.sparse import SPARSE
from deployc.facts.shapes.towers import VISION
from deployc.types.architecture import Architecture
from deployc.types.config import quantization
from deployc.types.facts import SAFETENSORS_NAMES, TensorGroup
from deployc.types.groups import run

FAMILIES: Rows = {
    **DENSE,
    **SPARSE,
    **HYBRID,
    "qwen2_vl_text": DENSE["qwen2"],
    "qwen2_5_vl_text": DENSE["qwen2"],
    "qwen3_vl_text": DENSE["qwen3"],
    "qwen3_vl_moe_text": SPARSE["qwen3_moe"],
}
"""By model_type of the language model."""


def shapes(config: Mapping[str, Any], arch: Architecture) -> tuple[TensorGroup, ...]:
    """Every tensor of a checkpoint of this architecture, sorted by name: in its own dtype, or as it is quantized.

    Raises Fault DC208 or DC209 for a family, tower or quantization that is not known here, DC210 for a size that is
    not there.
    """
    dtype = SAFETENSORS_NAMES[arch.dtype]
    groups = [TensorGroup(name, dtype, shape, count) for name, shape, count in _parts(config, arch)]
    if quantization(config):
        return quantized(groups, config, arch)
    return tuple(sorted(groups, key=lambda g: (g.pattern, g.dtype, g.shape)))


def derivable(config: Mapping[str, Any]) -> bool:
    """Whether this kind of model has a row here."""
    model_type, wrapper, _ = _kind(config)
    return model_type in FAMILIES and (wrapper is not None or config.get("model_type") not in WHOLES)


def strict(config: Mapping[str, Any]) -> bool:
    """Whether a checkpoint of this kind has exactly the names that are derived, and no others."""
    model_type, wrapper, _ = _kind(config)
    return wrapper is None and derivable(config) and FAMILIES[model_type].strict


def _kind(config: Mapping[str, Any]) -> tuple[str, Wrapper | None, Mapping[str, Any]]:
    """The family of the language model, what is around it, and the language model's own part of config.json.

    What the nested part leaves out is its class's default (`architecture.keys`).
    """
    outer = str(config.get("model_type"))
    if outer not in WHOLES:
        return outer, None, config
    text, path, model_type = WHOLES[outer].language(config)
    return model_type, WRAPPERS.get(outer), {**defaults(model_type), **text} if path else text


def _parts(config: Mapping[str, Any], arch: Architecture) -> Iterator[Part]:
    model_type, wrapper, text = _kind(config)
    family = FAMILIES.get(model_type)
    if family is None or not derivable(config):
        detail = f"the tensors of {config.get('model_type')} are not known without the weights' headers."
        raise faults.unsupported("model_type", detail)
    language = _language(family, Sizes(text, arch, config))
    if wrapper is None:
        yield from language
        return
    for name, shape, count in language:
        yield Part(wrapper.rename(name), shape, count)
    whole = WHOLES[str(config["model_type"])]
    for tower in wrapper.towers:
        yield from _tower(tower, config, arch, whole.vision if tower.key == "vision_config" else whole.audio)


def _language(family: Family, sizes: Sizes) -> Iterator[Part]:
    yield from family.outside(sizes)
    for block, at in family.blocks:
        if layers := at(sizes):
            yield from within(f"{family.module}.{run(layers)}", block(sizes), len(layers))
    if (ahead := family.prediction) is None or sizes.config.get(ahead.key, 0) is None:
        return
    for i in range(sizes.number(ahead.key, ahead.default, least=0)):
        module = ahead.module.format(i=i, after=sizes.arch.layers + i)
        for block in ahead.blocks:
            yield from within(module, block(sizes))
        if ahead.once and not i:
            yield from ahead.once(sizes)


def _tower(tower: Tower, config: Mapping[str, Any], arch: Architecture, like: str) -> Iterator[Part]:
    """`like` is the model_type of the tower whose config names none."""
    nested = config.get(tower.key)
    if nested is None:
        return
    if not isinstance(nested, Mapping):
        raise faults.bad_dimension(tower.key, f"an object is expected, not {nested!r:.60}.")
    named = nested.get("model_type")
    kind = named if isinstance(named, str) and (named in VISION or defaults(named)) else like
    sizes = Sizes({**defaults(kind), **nested}, arch, config)
    module, block = "", tower.block
    if block is None:
        if kind not in VISION:
            detail = f"a tower of model_type {kind!r:.60}, whose tensors are not known here."
            raise faults.unsupported(f"{tower.key}.model_type", detail)
        module, block = VISION[kind]
    inside = [Part(f"{tower.module}{module}{name}", shape, count) for name, shape, count in block(sizes)]
    for part in (*inside, *(tower.join(sizes) if tower.join else ())):
        if 0 in part.shape:
            raise faults.bad_dimension(tower.key, f"{part.name} would have no elements.")
        yield part
