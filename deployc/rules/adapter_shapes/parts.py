"""What an adapter does to each tensor of the model, and what of it does not fit: from names and shapes alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deployc.rules.adapter_shapes import experts
from deployc.rules.adapter_shapes.names import Item, is_end, place, read
from deployc.rules.adapter_shapes.scale import rank, scale
from deployc.rules.adapter_shapes.tied import Tie, tie
from deployc.types.architecture import Architecture
from deployc.types.merging import Part

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Group = dict[str, Item]  # role -> tensor of one module; bare parameters by their name

CONV1D = ("gpt2",)
"""Model types whose c_* modules are transformers' `Conv1D`, which holds [in, out]."""


@dataclass(slots=True)
class Reading:
    """The parts, in the order in which they are applied; what was wrong, by code, in the order of the modules.

    `modules`: all that the adapter changes, as it names them. `unknown` names. `base` has the shapes
    of the model's tensors, a tied output's among them.
    """

    base: dict[str, Shape]
    tie: Tie | None
    parts: list[Part] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    modules: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Adapter:
    """What is read: adapter_config.json, the tensors' shapes, and of which model type it is to be."""

    config: Mapping[str, Any]
    shapes: Shapes
    model_type: str


def parts(base: Shapes, architecture: Architecture, config: Mapping[str, Any], shapes: Shapes) -> Reading:
    """All parts of one adapter. Tensors are the checkpoint's, by its own names."""
    pair = tie(base, architecture)
    known = dict(base)
    if pair is not None and not pair.stored:
        known[pair.output] = base[pair.embedding]
    found = Reading(known, pair)
    adapter = Adapter(config, shapes, architecture.model_type)
    groups: dict[tuple[str, int], Group] = defaultdict(dict)
    for name in sorted(shapes):
        if (item := read(name)) is None:
            found.unknown.append(name)
        else:
            depth = item.depth if item.role in ("A", "B") else 0
            role = f"{item.role}.{item.parameter}" if item.role in ("base", "whole", "original") else item.role
            groups[item.module, depth][role] = item
    for (module, depth), group in sorted(groups.items()):
        found.modules.append(module)
        _replaced(found, adapter, module, group)
        _low(found, adapter, module, depth, group)
        _tokens(found, adapter, module, group)
    return found


def shape_after(base: Shapes, parts_: Sequence[Part], shapes: Shapes) -> dict[str, Shape]:
    """The shape of every tensor that one adapter's parts change, after them."""
    after: dict[str, Shape] = {}
    for one in parts_:
        after[one.tensor] = (
            shapes[one.of[0]] if one.kind in ("base", "whole") else after.get(one.tensor, base[one.tensor])
        )
    return after


def _replaced(found: Reading, adapter: Adapter, module: str, group: Group) -> None:
    """Tensors of the adapter that stand in place of the model's own."""
    for role, item in sorted(group.items()):
        kind, _, parameter = role.partition(".")
        if not parameter or (kind == "original" and f"whole.{parameter}" in group):
            continue  # peft saves what a trained module was before beside it where the vocabulary was resized
        shape = adapter.shapes[item.name]
        name = place(f"{module}.{parameter}", found.base) if kind != "original" else None
        if name is None:
            found.wrong["DC235"].append(f"{module}.{parameter}")
            continue
        ours = found.base[name]
        resized = found.tie is not None and name in (found.tie.embedding, found.tie.output)
        if shape[1:] != ours[1:] or (shape != ours and not resized):
            found.wrong["DC236"].append(f"{name} takes {list(ours)}, the adapter gives {list(shape)}")
        else:
            found.parts.append(Part(name, "base" if kind == "base" else "whole", (item.name,)))


def _low(found: Reading, adapter: Adapter, module: str, depth: int, group: Group) -> None:
    """A LoRA pair, with what belongs to it."""
    if (pair := _pair(found, module, group)) is None:
        return
    name = place(f"{module}.weight", found.base)
    if name is None or depth:
        _stacked(found, adapter, module, depth, pair)
        return
    into, out = (adapter.shapes[item.name] for item in pair)
    _ranks(found, adapter, module, {into[0], out[1] if len(out) > 1 else 0})
    resized = [adapter.shapes[item.name] for role, item in group.items() if role == "base.weight"]
    shape = resized[0] if resized else found.base[name]
    embedding = "embedding_A" in group
    transposed = _lies_over(shape, into, out, embedding, _is_conv1d(adapter, module))
    if transposed is None:
        gives = [*into[1:], out[0]] if embedding else [out[0], *into[1:]]
        found.wrong["DC236"].append(f"{module} takes {list(shape)}, the adapter gives {gives}")
        return
    factor = scale(adapter.config, module)
    of = (*(item.name for item in pair), *_magnitude(found, adapter, module, group, shape, out[0]))
    found.parts.append(Part(name, "low", of, factor, transposed))
    if bias := group.get("bias"):
        _added(found, adapter, module, bias, factor)


def _pair(found: Reading, module: str, group: Group) -> tuple[Item, Item] | None:
    """A and B; where only a part of a pair is there that is noted."""
    a, b = group.get("A", group.get("embedding_A")), group.get("B", group.get("embedding_B"))
    if a is not None and b is not None:
        return a, b
    if a is None and b is None:
        if rest := next((group[role] for role in ("bias", "magnitude") if role in group), None):
            found.wrong["DC240"].append(f"{module} has {rest.name.rpartition('.lora_')[2]} but no lora_A")
        return None
    half, other = ("A", "B") if b is None else ("B", "A")
    found.wrong["DC240"].append(f"{module} has lora_{half} but no lora_{other}")
    return None


def _magnitude(
    found: Reading, adapter: Adapter, module: str, group: Group, shape: Shape, outputs: int
) -> tuple[str, ...]:
    """DoRA's, one value an output."""
    item = group.get("magnitude")
    if item is None:
        if adapter.config.get("use_dora"):
            found.wrong["DC240"].append(f"{module} has lora_A but no lora_magnitude_vector, and `use_dora` is set")
        return ()
    if len(shape) != 2:
        found.wrong["DC238"].append(f"{item.name}: DoRA on a convolution")
    elif math.prod(own := adapter.shapes[item.name]) != outputs:
        found.wrong["DC236"].append(f"{module} has {outputs} outputs, its magnitude is {list(own)}")
    return (item.name,)


def _lies_over(shape: Shape, into: Shape, out: Shape, embedding: bool, conv1d: bool) -> bool | None:
    """Whether the tensor is [in, out], by the pair's shapes; None where it is neither way."""
    if len(shape) > 2:  # a convolution that shares nothing between groups: B A has its shape when laid out flat
        fits = len(into) == len(shape) and into[1:] == shape[1:] and out[0] == shape[0] and math.prod(out[2:]) == 1
        return False if fits else None
    if len(into) != 2 or len(out) != 2:
        return None
    plain, over = shape == (out[0], into[1]), shape == (into[1], out[0])
    if over and (embedding or conv1d):
        return True
    return False if plain and not embedding else None


def _is_conv1d(adapter: Adapter, module: str) -> bool:
    """peft goes by the module's class, and notes in `fan_in_fan_out` what the last one was."""
    if adapter.model_type in CONV1D:
        return module.rpartition(".")[2].startswith("c_")
    return bool(adapter.config.get("fan_in_fan_out"))


def _added(found: Reading, adapter: Adapter, module: str, bias: Item, factor: float) -> None:
    """`lora_bias`: the pair's own bias, scaled like it."""
    name = place(f"{module}.bias", found.base)
    if name is None:
        found.wrong["DC238"].append(f"{bias.name}: {module} has no bias in the model to which it could be added")
    elif found.base[name] != adapter.shapes[bias.name]:
        shape = list(adapter.shapes[bias.name])
        found.wrong["DC236"].append(f"{name} takes {list(found.base[name])}, the adapter gives {shape}")
    else:
        found.parts.append(Part(name, "add", (bias.name,), factor))


def _stacked(found: Reading, adapter: Adapter, module: str, depth: int, pair: tuple[Item, Item]) -> None:
    """A pair on a bare parameter, as experts are in transformers 5."""
    into, out = (adapter.shapes[item.name] for item in pair)
    if not adapter.config.get("target_parameters"):
        found.wrong["DC235"].append(module)
        return
    target = experts.target(adapter.config["target_parameters"], module, depth, found.base)
    if isinstance(target, str):
        found.wrong["DC235" if not target else "DC238"].append(f"{pair[0].name}: {target}" if target else module)
        return
    parameter = f"{module}.{target.parameter}"
    if into[0] % target.experts or out[1:] != into[:1]:
        found.wrong["DC237"].append(f"{parameter} has rank {into[0]} and {out[-1]} over {target.experts} experts")
        return
    _ranks(found, adapter, parameter, {into[0] // target.experts})
    made = experts.parts(target, (pair[0].name, pair[1].name), into, out, scale(adapter.config, parameter), found.base)
    if isinstance(made, str):
        found.wrong["DC236"].append(f"{parameter}: {made}")
    else:
        found.parts += made


def _tokens(found: Reading, adapter: Adapter, module: str, group: Group) -> None:
    """Rows of an embedding that were trained by themselves."""
    if (item := group.get("tokens")) is None:
        return
    said = adapter.config.get("trainable_token_indices")
    if isinstance(said, Mapping):
        said = next((rows for key, rows in said.items() if is_end(key, module)), None)
    name, shape = place(f"{module}.weight", found.base), adapter.shapes[item.name]
    if name is None:
        found.wrong["DC235"].append(module)
        return
    index = tuple(said) if isinstance(said, list) and all(type(row) is int for row in said) else ()
    based = [adapter.shapes[i.name][0] for r, i in group.items() if r == "base.weight"]
    rows = based[0] if based else found.base[name][0]
    if len(index) != shape[0] or shape[1:] != found.base[name][1:] or any(not 0 <= row < rows for row in index):
        detail = f"{item.name} has {list(shape)}, `trainable_token_indices` names {len(index)} tokens"
        found.wrong["DC236"].append(f"{detail} of {rows}" if len(index) == shape[0] else detail)
    else:
        found.parts.append(Part(name, "rows", (item.name,), index=index))


def _ranks(found: Reading, adapter: Adapter, module: str, ranks: set[int]) -> None:
    """The rank in the tensors is that of adapter_config.json."""
    if ranks != {expected := rank(adapter.config, module)}:
        shown = " and ".join(map(str, sorted(ranks)))
        found.wrong["DC237"].append(f"{module} has rank {shown}, its config says {expected}")
