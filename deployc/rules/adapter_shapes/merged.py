"""The model as the artifact holds it: what adapters change of its tensors' shapes and of its config.json.

total = W + sum of weight_i · (adapter_i(W) - W), where adapter_i(W) is what that adapter alone would make of W. What
several adapters put in the place of a tensor must be one and the same, and is put there once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.rules.adapter_shapes.check import read
from deployc.rules.adapter_shapes.parts import shape_after
from deployc.rules.adapter_shapes.tied import ALWAYS_TIED, Tie, by_construction, settled, stays_tied
from deployc.types.config import language, put
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.groups import compress, expand
from deployc.types.merging import Part, is_streamed

Shape = tuple[int, ...]
Compare = Callable[[int, Part, int, Part], bool]
"""Whether a part of one adapter (by number) and one of another, or of the same, hold the same values."""


@dataclass(frozen=True, slots=True)
class Merged:
    """`parts` by adapter. `shapes`: of every tensor that is changed or added, after it. `borrowed`: an output that the
    checkpoint lacks -> the embedding whose values it begins with. `config`: dotted key of config.json -> new value.
    `mended`: what of the model's shape is another, in words."""

    model: ModelFacts
    parts: tuple[tuple[Part, ...], ...]
    shapes: Mapping[str, Shape]
    borrowed: Mapping[str, str]
    config: Mapping[str, Any]
    mended: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def merged(
    model: ModelFacts, adapters: Sequence[AdapterFacts], at: Span | None = None, compare: Compare | None = None
) -> Merged:
    """The model after a merge of adapters that fit it, as `adapter_shapes` says.

    Without `compare` values are not known: tied embeddings that may become two are counted as two, and adapters that
    replace one tensor are taken to agree. Adapters that only peft can merge change no shape.
    """
    if not adapters or not all(is_streamed(adapter.config) for adapter in adapters):
        return Merged(model, ((),) * len(adapters), {}, {}, {}, (), ())
    readings = [read(model, adapter) for adapter in adapters]
    base, pair = readings[0].base, readings[0].tie
    parts = [reading.parts for reading in readings]
    shapes_of = [{name: group.shape for group in a.tensors for name in expand(group)} for a in adapters]
    borrowed: dict[str, str] = {}
    tied = pair is not None and pair.tied
    if pair is not None and pair.tied:
        same = [_same(i, adapter, compare) for i, adapter in enumerate(adapters)]
        tied = all(stays_tied(pair, own, one) for own, one in zip(parts, same, strict=True))
        parts = [settled(pair, own, tied) for own in parts]
        if not tied and not pair.stored:
            borrowed[pair.output] = pair.embedding
    afters = [shape_after(base, own, shapes) for own, shapes in zip(parts, shapes_of, strict=True)]
    found = [*_disagreeing(adapters, parts, afters, compare, at)]
    if pair is not None and pair.tied and not tied:
        found += _cannot_part(model, adapters, pair, at)
    shapes = {name: shape for after in afters for name, shape in after.items()}
    if pair is not None:
        for name in borrowed:
            shapes.setdefault(name, base[name])
        found = found or _rows(adapters, pair, {**base, **shapes}, tied, at)
    said = _config(model, pair, shapes, tied)
    words = _changes(pair, base, shapes, bool(borrowed))
    if words and not found:
        names = " and ".join(adapter.name for adapter in adapters)
        fix = "Nothing to do: weights and config.json of the artifact have it, and its memory is counted."
        detail = f"{names}: {'; '.join(words)}."
        found = [warning("DC243", "the merge changes the model's shape", detail, fix, at)]
    after = _facts(model, shapes, said)
    return Merged(after, tuple(map(tuple, parts)), shapes, borrowed, said, tuple(words), tuple(found))


def new_config(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """config.json of the artifact: `changes` are those of `Merged.config`."""
    for key, value in changes.items():
        _, config = put(config, key.split("."), value)
    return dict(config)


def _same(number: int, adapter: AdapterFacts, compare: Compare | None) -> Callable[[Part, Part], bool]:
    if compare is None:
        return by_construction(adapter.config)
    known = compare
    return lambda one, other: known(number, one, number, other)


def _disagreeing(
    adapters: Sequence[AdapterFacts],
    parts: Sequence[Sequence[Part]],
    afters: Sequence[Mapping[str, Shape]],
    compare: Compare | None,
    at: Span | None,
) -> list[Diagnostic]:
    """What cannot be summed: two values for one tensor, or adapters of two sizes of one."""
    wrong = []
    for i, j in combinations(range(len(adapters)), 2):
        for tensor in sorted(afters[i].keys() & afters[j].keys()):
            one, other = ([p for p in parts[n] if p.tensor == tensor] for n in (i, j))
            sizes = [list(afters[n][tensor]) for n in (i, j)]
            why = f"{sizes[0]} and {sizes[1]}" if sizes[0] != sizes[1] else _against(i, one, j, other, compare)
            if why:
                wrong.append(f"{adapters[i].name} and {adapters[j].name}: {tensor}: {why}")
    if not wrong:
        return []
    fix = "Merge one of them, or serve them: mode: serve."
    more = f" ({len(wrong)} tensors)" if len(wrong) > 1 else ""
    return [error("DC241", "adapters put different values in one place", f"{wrong[0]}{more}.", fix, at)]


def _against(i: int, one: Sequence[Part], j: int, other: Sequence[Part], compare: Compare | None) -> str:
    for kinds in (("base", "whole"), ("rows",)):
        a, b = (next((p for p in own if p.kind in kinds), None) for own in (one, other))
        if a is None or b is None or (a.kind == "rows" and not set(a.index) & set(b.index)):
            continue
        if a.index != b.index:
            return "both replace some of the same rows"
        if compare is not None and not compare(i, a, j, b):
            return "both replace it, by different values"
    return ""


def _rows(
    adapters: Sequence[AdapterFacts], pair: Tie, after: Mapping[str, Shape], tied: bool, at: Span | None
) -> list[Diagnostic]:
    """Input and output must have one size."""
    if tied or after[pair.embedding][0] == after[pair.output][0]:
        return []
    names = " and ".join(adapter.name for adapter in adapters)
    detail = (
        f"{names}: after the merge {pair.embedding} would have {after[pair.embedding][0]} rows, {pair.output} "
        f"{after[pair.output][0]}."
    )
    fix = "Save the adapter again with save_embedding_layers=True: it resized both."
    return [error("DC236", "the adapter has other shapes than the model", detail, fix, at)]


def _cannot_part(model: ModelFacts, adapters: Sequence[AdapterFacts], pair: Tie, at: Span | None) -> list[Diagnostic]:
    """Two embeddings where the engine has one would give other answers than the adapter was trained to."""
    if (kind := model.architecture.model_type) not in ALWAYS_TIED:
        return []
    names = " and ".join(adapter.name for adapter in adapters)
    detail = (
        f"{names}: {pair.embedding} and {pair.output} become different, and the engine has one tensor for both in "
        f"{kind} models."
    )
    fix = "Train both alike (ensure_weight_tying in peft's config), or neither."
    return [error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)]


def _config(model: ModelFacts, pair: Tie | None, shapes: Mapping[str, Shape], tied: bool) -> dict[str, Any]:
    """Dotted keys of config.json that the merged tensors make wrong."""
    if pair is None:
        return {}
    inner = language(model.config)
    nested = next((f"{key}." for key, value in model.config.items() if value is inner), "")
    said: dict[str, Any] = {}
    rows = shapes.get(pair.embedding, (model.architecture.vocab_size,))[0]
    before = next((g.shape[0] for g in model.tensors if pair.embedding in expand(g)), rows)
    if rows != before:
        said[f"{nested}vocab_size"] = rows
    if pair.tied and not tied:
        said |= {key: False for key in dict.fromkeys(("tie_word_embeddings", f"{nested}tie_word_embeddings"))}
    return said


def _changes(pair: Tie | None, base: Mapping[str, Shape], shapes: Mapping[str, Shape], untied: bool) -> list[str]:
    """What is mended in the artifact, by name."""
    words = [
        f"{name} becomes {list(shape)}, from {list(base[name])}"
        for name, shape in sorted(shapes.items())
        if shape != base[name] and not (untied and pair is not None and name == pair.output)
    ]
    if untied and pair is not None:
        words.append(f"{pair.output} {list(shapes[pair.output])} is added: it is no longer one with {pair.embedding}")
    return words


def _facts(model: ModelFacts, shapes: Mapping[str, Shape], said: Mapping[str, Any]) -> ModelFacts:
    """The facts of what is served: its own tensors, in the model's dtypes."""
    tensors = {name: (group.dtype, group.shape) for group in model.tensors for name in expand(group)}
    if not said and all(name in tensors and tensors[name][1] == shape for name, shape in shapes.items()):
        return model
    dtype = max((group.dtype for group in model.tensors), key=[group.dtype for group in model.tensors].count)
    for name, shape in shapes.items():
        tensors[name] = (tensors[name][0] if name in tensors else dtype, shape)
    values = {key.rpartition(".")[2]: value for key, value in said.items()}
    return replace(
        model,
        config=new_config(model.config, said),
        architecture=replace(model.architecture, **values),
        tensors=compress((name, d, shape) for name, (d, shape) in tensors.items()),
    )
