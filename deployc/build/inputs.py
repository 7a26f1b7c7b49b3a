"""The model and adapters of a recipe as folders on this disk, checked before one weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build import faults
from deployc.build.merge.entries import entries, merge_of
from deployc.build.merge.in_memory import Whole
from deployc.build.quantize import layers
from deployc.build.weights.layout import FLOATS, plan
from deployc.build.weights.safetensors_file import Reader, layout, shards
from deployc.diagnostics import Diagnostic, Report, Severity, Stop
from deployc.facts.adapter import adapter_facts
from deployc.facts.faults import Fault, only_other_weights
from deployc.facts.folder import Folder
from deployc.facts.model import model_facts
from deployc.facts.source import is_folder
from deployc.rules import ignored
from deployc.rules.adapter_shapes import adapter_shapes
from deployc.rules.adapter_shapes.check import read
from deployc.rules.adapter_shapes.in_memory import by_peft
from deployc.rules.adapter_shapes.plain_name import guess
from deployc.types.bundle import Recipe
from deployc.types.facts import AdapterFacts, ModelFacts, pickles
from deployc.types.groups import Tensor, expand
from deployc.types.merging import is_streamed
from deployc.types.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the build works on. `shards` are file names in `model`; `bytes` of all shards to write,
    `plain_bytes` of the same in 16 bit.

    `config` is the model's config.json, `changes` what a merge makes of its keys; `rows` of the embedding after it.
    """

    model: Path
    shards: tuple[str, ...]
    config: Mapping[str, Any]
    changes: Mapping[str, Any]
    rows: int
    adapters: tuple[Mapping[str, Any], ...]  # as the worker's job has them
    quantized: Mapping[str, Scheme]
    left_alone: tuple[str, ...]
    bytes: int
    plain_bytes: int
    notes: tuple[Diagnostic, ...]
    by_peft: Whole | None = None  # merged by peft first, with the whole model in memory; then `adapters` is empty


def check(recipe: Recipe, model: Path, adapters: Mapping[str, Path]) -> Inputs:
    """Everything that headers and configs can tell, all faults at once. Raises Stop; warnings go into `notes`.

    `adapters` maps their names to folders.
    """
    report = Report()
    facts = _model(recipe, model, report)
    known = [_adapter(recipe, name, source, adapters[name], report) for name, source, _, _ in recipe.adapters]
    if facts is None or None in known:
        raise Stop(report)
    tensors = [(name, group.dtype, group.shape) for group in facts.tensors for name in expand(group)]
    if facts.quantization:
        names = (recipe.model_source, *(adapter.base for adapter in known if adapter is not None))
        report.add(faults.quantized_base(str(facts.quantization.get("quant_method")), guess(*names)))
    for adapter in known:
        if adapter is not None:
            report.extend(adapter_shapes(facts, adapter, None))
            report.extend(_no_floats(adapter, facts))
    if recipe.weights != "none":
        report.extend(ignored.check(recipe.model_source, tensors, recipe.ignore))
    if report.errors:
        raise Stop(report)
    merging = [adapter for adapter in known if adapter is not None]
    weights = {name: factor for name, _, _, factor in recipe.adapters}
    report.extend(by_peft(facts, merging, list(weights.values()), None))
    alone = [adapter for adapter in merging if not is_streamed(adapter.config)]
    merging = [] if alone else merging
    merge = merge_of(facts, merging, adapters)
    report.extend(merge.diagnostics)
    if report.errors:
        raise Stop(report)
    tensors = [(name, group.dtype, group.shape) for group in merge.model.tensors for name in expand(group)]
    files = tuple(shards(model))
    taken = layers.schemes(tensors, recipe)
    return Inputs(
        model=model,
        shards=files,
        config=facts.config,
        changes={key: value for key, value in merge.model.config.items() if value != facts.config.get(key)},
        rows=merge.model.architecture.vocab_size,
        adapters=tuple(entries(merge, merging, adapters, weights)),
        quantized=taken,
        left_alone=tuple(layers.left_alone(tensors, recipe.ignore)) if taken else (),
        bytes=_bytes(recipe, model, files, taken, merge.shapes)
        + (_bytes(recipe, model, files, {}, {}) if alone else 0),  # what peft writes for the pass to read
        plain_bytes=_bytes(recipe, model, files, {}, merge.shapes),
        notes=tuple(d for d in report if d.severity is Severity.WARNING),
        by_peft=Whole(facts, model, files, alone[0], adapters[alone[0].name], recipe.dtype) if alone else None,
    )


def pins_of(recipe: Recipe, adapter: str) -> dict[str, str]:
    """File -> digest of one adapter."""
    prefix = f"{adapter}/"
    return {p.removeprefix(prefix): pin for p, pin in recipe.adapter_files.items() if p.startswith(prefix)}


def _model(recipe: Recipe, folder: Path, report: Report) -> ModelFacts | None:
    try:
        facts, _ = model_facts(Folder(folder, recipe.model_source), recipe.model_source, recipe.assume)
        if found := pickles(facts.files):
            kind = "pickle, which can run code when it is read"
            raise only_other_weights(recipe.model_source, ", ".join(found[:3]), kind)
    except Fault as fault:
        report.add(fault.diagnostic)
        return None
    if facts.weights_basis != "header":
        report.add(faults.no_weights(recipe.model_source))
    _compare(recipe.model_source, recipe.model_files, facts.files, report)
    return facts


def _adapter(recipe: Recipe, name: str, source: str, folder: Path, report: Report) -> AdapterFacts | None:
    try:
        facts = adapter_facts(name, Folder(folder, source), source)
    except Fault as fault:
        report.add(fault.diagnostic)
        return None
    _compare(source, pins_of(recipe, name), facts.files, report)
    return facts


def _compare(source: str, pins: Mapping[str, str], now: Mapping[str, str], report: Report) -> None:
    """A folder's files are those of the recipe, digest by digest; a hub's were compared when they came."""
    if not pins:
        report.add(faults.unpinned(source))
    elif is_folder(source) and (wrong := sorted(n for n in pins.keys() | now.keys() if pins.get(n) != now.get(n))):
        report.add(faults.changed_inputs(source, wrong))


def _no_floats(adapter: AdapterFacts, model: ModelFacts) -> list[Diagnostic]:
    """A merge adds plain floating point numbers, on both sides."""
    if not is_streamed(adapter.config):
        return []
    parts = read(model, adapter).parts
    changed, used = {part.tensor for part in parts}, {name for part in parts for name in part.of}
    sides = [(adapter.name, g, n) for g in adapter.tensors for n in expand(g) if n in used]
    sides += [(model.source, g, n) for g in model.tensors for n in expand(g) if n in changed]
    wrong = [(whose, group, name) for whose, group, name in sides if group.dtype not in FLOATS]
    return [faults.no_floats(whose, name, group.dtype) for whose, group, name in wrong[:1]]


def _bytes(
    recipe: Recipe,
    model: Path,
    files: tuple[str, ...],
    quantized: Mapping[str, Scheme],
    changed: Mapping[str, tuple[int, ...]],
) -> int:
    total = 0
    added = set(changed)
    for name in files:
        with Reader(model / name, recipe.model_source) as reader:
            added -= {slot.name for slot in reader.slots}
            new = sorted(added) if name == files[-1] else ()
            outputs: list[Tensor] = [
                t for w in plan(reader.slots, changed, new, quantized, recipe.dtype) for t in w.outputs()
            ]
            total += layout(outputs, reader.metadata)[2]
    return total
