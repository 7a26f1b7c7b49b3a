"""Does an adapter belong to this model: every tensor of it against the model's that it changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from deployc.cost.weights.linears import unpacked
from deployc.cost.weights.names import read as tensor_name
from deployc.diagnostics import Diagnostic, Severity, Span, error, note, warning
from deployc.rules.adapter_shapes.names import named
from deployc.rules.adapter_shapes.parts import Reading, parts
from deployc.rules.adapter_shapes.plain_name import plain_name
from deployc.types.facts import AdapterFacts, ModelFacts, TensorGroup
from deployc.types.groups import expand
from deployc.types.merging import CHANGES_BASE, is_streamed

PLAIN_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
"""`init_lora_weights` that leave the base's weights as they are (peft 0.21.2, `LoraLayer.update_layer`)."""
_FEATURES: Mapping[str, str] = {
    "layer_replication": "it repeats layers, so the merged model would be another architecture",
    "alora_invocation_tokens": "it acts only behind certain tokens, which no merged weight can",
    "arrow_config": "it chooses among adapters token by token, which no merged weight can",
    "use_qalora": "it was trained on pooled inputs of a quantized base",
    "use_bdlora": "block-diagonal factors are not merged here",
    "velora_config": "its layers are not merged here",
    "monteclora_config": "its layers are not merged here",
    "kasa_config": "its layers are not merged here",
}


def adapter_shapes(model: ModelFacts, adapter: AdapterFacts, at: Span | None) -> list[Diagnostic]:
    """Errors where the adapter cannot be applied to the model; a warning where it was trained on another one.

    One diagnostic a kind of fault, with the first tensor and the number of them.
    """
    if not is_streamed(adapter.config):
        return [*_pickle(adapter, at), *_other_base(model, adapter, at)]
    reading = read(model, adapter)
    found = [*_unsupported(adapter, reading, at)]
    if not reading.parts and not reading.wrong:
        detail = f"{adapter.name} has {sum(g.count for g in adapter.tensors)} tensors and none of them is a LoRA pair."
        fix = "Save it with peft's save_pretrained after training; an empty adapter changes nothing."
        found.append(error("DC239", "the adapter changes nothing", detail, fix, at))
    found += _wrong(model, adapter, reading, at)
    wrong_base = any(d.severity is Severity.ERROR and d.code in ("DC235", "DC236") for d in found)
    if wrong_base:
        return found
    return [*found, *_pickle(adapter, at), *_targets(adapter, reading, at), *_other_base(model, adapter, at)]


def read(model: ModelFacts, adapter: AdapterFacts) -> Reading:
    """What a LoRA adapter does to the model's tensors."""
    base = {name: group.shape for group in _matrices(model) for name in expand(group)}
    shapes = {name: group.shape for group in adapter.tensors for name in expand(group)}
    return parts(base, model.architecture, adapter.config, shapes)


def _matrices(model: ModelFacts) -> Iterator[TensorGroup]:
    """The model's tensors; of packed ones the matrix [outputs, inputs] that they stand for, as adapters see it."""
    for group in model.tensors:
        name = tensor_name(group.pattern)
        shape = unpacked(group, name, model.quantization, model.architecture) if model.quantization else ()
        yield replace(group, pattern=f"{group.pattern.rpartition('.')[0]}.weight", shape=shape) if shape else group


def _pickle(adapter: AdapterFacts, at: Span | None) -> Iterator[Diagnostic]:
    if "adapter_model.bin" not in adapter.files or "adapter_model.safetensors" in adapter.files:
        return
    detail = f"{adapter.name} has adapter_model.bin alone. Only tensors are taken from it (torch's weights_only)."
    fix = "Save it as safetensors once: a pickle can run code in programs that load it less carefully."
    yield warning("DC233", "the adapter is a pickle", detail, fix, at)


def _unsupported(adapter: AdapterFacts, reading: Reading, at: Span | None) -> Iterator[Diagnostic]:
    fix = "Train without it, or merge the adapter yourself with peft and name the merged folder as model.source."
    config: Mapping[str, Any] = adapter.config
    wrong = [f"`{key}` is {config[key]!r}: {why}" for key, why in _FEATURES.items() if config.get(key)]
    init = config.get("init_lora_weights")
    if isinstance(init, str) and init.lower() not in (*PLAIN_INITS, *CHANGES_BASE):
        wrong.append(
            f"`init_lora_weights` is {init!r}: it changes the base's weights by what is not saved; convert it with "
            "peft's path_initial_model_for_weight_conversion"
        )
    for detail in wrong:
        said = f"{adapter.name}: adapter_config.json {detail}."
        yield error("DC238", "this feature of an adapter is not supported yet", said, fix, at)
    if unknown := reading.unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        detail = f"{adapter.name}: {unknown[0]}{more}: peft writes only base_model.model.<module>.<tensor>."
        yield error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)
    if features := reading.wrong.get("DC238"):
        more = f" ({len(features)} such tensors)" if len(features) > 1 else ""
        detail = f"{adapter.name}: {features[0]}{more}."
        yield error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)


def _wrong(model: ModelFacts, adapter: AdapterFacts, reading: Reading, at: Span | None) -> Iterator[Diagnostic]:
    wrong, fix = reading.wrong, _base_fix(adapter)
    if alone := wrong.get("DC240"):
        detail = f"{adapter.name}: {alone[0]} ({len(alone)} such modules)."
        again = "The file is incomplete: save or download the adapter again."
        yield error("DC240", "half of a LoRA pair is missing", detail, again, at)
    if strange := wrong.get("DC235"):
        of = f"{len(strange)} of its {len(set(reading.modules))} modules"
        family = f"{model.architecture.model_type}, {model.architecture.layers} layers"
        detail = f"{adapter.name} changes {strange[0]} ({of}), which {model.source} ({family}) does not have."
        yield error("DC235", "the adapter names modules that the model lacks", detail, fix, at)
    if sizes := wrong.get("DC236"):
        differ = f"{len(sizes)} of {len(set(reading.modules))} modules differ"
        detail = f"{adapter.name} on {model.source}: {sizes[0]} ({differ})."
        yield error("DC236", "the adapter has other shapes than the model", detail, fix, at)
    if ranks := wrong.get("DC237"):
        both = "adapter_config.json and the adapter's weights must come from one save; the scale depends on the rank."
        detail = f"{adapter.name}: {ranks[0]} ({len(ranks)} modules)."
        yield error("DC237", "the adapter's rank is not what its config says", detail, both, at)


def _targets(adapter: AdapterFacts, reading: Reading, at: Span | None) -> Iterator[Diagnostic]:
    """`target_modules` against the modules that have a pair: both were written by one save."""
    listed = adapter.config.get("target_modules")
    pairs = [part.of[0] for part in reading.parts if part.kind == "low" and not part.experts]
    modules = sorted({name.removeprefix("base_model.model.").partition(".lora_")[0] for name in pairs})
    missing: list[str] = []
    if isinstance(listed, list):
        ends = [one for one in listed if isinstance(one, str)]
        missing = [one for one in ends if not any(named([one], m) for m in modules) and _has(reading, one)]
        extra = [m for m in modules if not named(ends, m)]
    elif isinstance(listed, str) and listed != "all-linear":
        extra = [m for m in modules if not _matches(listed, m)]
    else:
        extra = []
    if adapter.config.get("ensure_weight_tying") or adapter.config.get("target_parameters"):
        missing = extra = []  # peft adds and renames targets itself
    saved = adapter.config.get("modules_to_save") or ()
    whole = [part.tensor.rpartition(".")[0] for part in reading.parts if part.kind in ("base", "whole")]
    missing += [m for m in saved if not any(named([m], one) or f".{m}." in f".{one}." for one in whole)]
    wrong = []
    if missing:
        wrong.append(f"its config lists {', '.join(missing[:3])}, of which no weights are there")
    if extra:
        wrong.append(f"weights of {extra[0]} ({len(extra)} modules), which `target_modules` leaves out")
    for detail in wrong:
        yield warning(
            "DC244",
            "adapter_config.json and the adapter's weights name different modules",
            f"{adapter.name}: {detail}.",
            "Merge what one save_pretrained wrote; if the list was edited by hand, take the original.",
            at,
        )


def _has(reading: Reading, listed: str) -> bool:
    """Whether the model has a module of that name; peft takes no notice of one that it has not."""
    return any(named([listed], name.removesuffix(".weight")) for name in reading.base if name.endswith(".weight"))


def _matches(pattern: str, module: str) -> bool:
    try:
        return re.fullmatch(pattern, module) is not None
    except re.error:
        return True


def _other_base(model: ModelFacts, adapter: AdapterFacts, at: Span | None) -> Iterator[Diagnostic]:
    """Another name is only certain to be another model where both are ids of a hub; its quantized form is none."""
    names = {adapter.base, plain_name(adapter.base) or adapter.base}
    sources = {model.source, plain_name(model.source) or model.source}
    if not adapter.base or {_last(name) for name in names} & {_last(name) for name in sources}:
        return
    detail = f"{adapter.name} was trained on {adapter.base}; model.source is {model.source}. All shapes match."
    if model.hub == "folder":
        yield note("DC234", "the adapter names another base model", detail, "Nothing to do if the folder holds it.", at)
    else:
        fix = f"Serve {adapter.base}, or be sure that both are the same model: on another fine-tune answers get worse."
        yield warning("DC234", "the adapter names another base model", detail, fix, at)


def _last(source: str) -> str:
    """The last part of an id or path, as hub caches write it: `Qwen2___5-7B` is `Qwen2.5-7B`."""
    return source.rstrip("/").rpartition("/")[2].replace("___", ".").lower()


def _base_fix(adapter: AdapterFacts) -> str:
    base = f", {adapter.base}" if adapter.base else ""
    return f"Name the model that it was trained on{base} as model.source, or another adapter."
