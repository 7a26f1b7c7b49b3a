"""Does an adapter belong to this model: every LoRA pair against the base tensor that it changes.

peft names them `base_model.model.<module>.lora_A.weight` [r, in] and `….lora_B.weight` [out, r], beside
`<module>.weight` [out, in] of the base (peft, `LoraLayer`). What else an adapter may hold is not supported yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deployc.diagnostics import Diagnostic, Severity, Span, error, note, warning
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.groups import expand

PREFIX = "base_model.model."
Shapes = Mapping[str, tuple[int, ...]]


def adapter_shapes(model: ModelFacts, adapter: AdapterFacts, at: Span | None) -> list[Diagnostic]:
    """Errors where the adapter cannot be applied to the model; a warning where it was trained on another one.

    One diagnostic a kind of fault, with the first tensor and the number of them.
    """
    base = {name: group.shape for group in model.tensors for name in expand(group)}
    tensors = {name: group.shape for group in adapter.tensors for name in expand(group)}
    pairs, extra = _pairs(tensors)
    found = [*_unsupported(adapter, extra, at)]
    if not pairs:
        detail = f"{adapter.name} has {len(tensors)} tensors and none of them is a LoRA pair."
        fix = "Save it with peft's save_pretrained after training; an empty adapter changes nothing."
        found.append(error("DC239", "the adapter changes nothing", detail, fix, at))
    found += _halves(adapter, pairs, at)
    found += _modules(adapter, pairs, base, model, at)
    found += _sizes(adapter, pairs, base, model, at)
    found += _ranks(adapter, pairs, at)
    wrong_base = any(d.severity is Severity.ERROR and d.code in ("DC235", "DC236") for d in found)
    return [*found, *([] if wrong_base else _other_base(model, adapter, at))]


Pair = dict[str, tuple[int, ...]]  # "A", "B" -> shape


def _pairs(tensors: Shapes) -> tuple[dict[str, Pair], list[str]]:
    """Module of the base -> its pair, and the names that are no part of one."""
    pairs: dict[str, Pair] = {}
    extra: list[str] = []
    for name, shape in sorted(tensors.items()):
        match = re.fullmatch(re.escape(PREFIX) + r"(.+)\.lora_([AB])\.weight", name)
        if match and len(shape) == 2:
            pairs.setdefault(match[1], {})[match[2]] = shape
        else:
            extra.append(name)
    return pairs, extra


def _unsupported(adapter: AdapterFacts, extra: list[str], at: Span | None) -> Iterator[Diagnostic]:
    fix = "Train without it, or merge the adapter yourself with peft and name the merged folder as model.source."
    config: Mapping[str, Any] = adapter.config
    for key in ("use_dora", "fan_in_fan_out", "modules_to_save", "layer_replication", "lora_bias", "use_qalora",
                "trainable_token_indices", "target_parameters", "alora_invocation_tokens"):  # fmt: skip
        if config.get(key):
            detail = f"{adapter.name}: adapter_config.json `{key}` is {config[key]!r}."
            yield error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)
    if config.get("bias", "none") != "none":
        detail = f"{adapter.name}: adapter_config.json `bias` is {config['bias']!r}: it trained biases of the base."
        yield error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)
    if extra:
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        detail = f"{adapter.name}: {extra[0]}{more}: only {PREFIX}<module>.lora_A/lora_B.weight are known here."
        yield error("DC238", "this feature of an adapter is not supported yet", detail, fix, at)


def _halves(adapter: AdapterFacts, pairs: Mapping[str, Pair], at: Span | None) -> Iterator[Diagnostic]:
    if alone := [(module, next(iter(pair))) for module, pair in pairs.items() if len(pair) == 1]:
        module, half = alone[0]
        other = "B" if half == "A" else "A"
        detail = f"{adapter.name}: {module} has lora_{half} but no lora_{other} ({len(alone)} such modules)."
        fix = "The file is incomplete: save or download the adapter again."
        yield error("DC240", "half of a LoRA pair is missing", detail, fix, at)


def _modules(
    adapter: AdapterFacts, pairs: Mapping[str, Pair], base: Shapes, model: ModelFacts, at: Span | None
) -> Iterator[Diagnostic]:
    if strange := [module for module in pairs if f"{module}.weight" not in base]:
        detail = (
            f"{adapter.name} changes {strange[0]} ({len(strange)} of its {len(pairs)} modules), which "
            f"{model.source} ({model.architecture.model_type}, {model.architecture.layers} layers) does not have."
        )
        yield error("DC235", "the adapter names modules that the model lacks", detail, _base_fix(adapter), at)


def _sizes(
    adapter: AdapterFacts, pairs: Mapping[str, Pair], base: Shapes, model: ModelFacts, at: Span | None
) -> Iterator[Diagnostic]:
    wrong: list[str] = []
    for module, pair in pairs.items():
        shape = base.get(f"{module}.weight")
        if shape is None or len(shape) != 2:
            continue
        out_in = (pair["B"][0] if "B" in pair else shape[0], pair["A"][1] if "A" in pair else shape[1])
        if out_in != shape:
            wrong.append(f"{module} takes [{shape[0]}, {shape[1]}], the adapter gives [{out_in[0]}, {out_in[1]}]")
    if wrong:
        detail = f"{adapter.name} on {model.source}: {wrong[0]} ({len(wrong)} of {len(pairs)} modules differ)."
        yield error("DC236", "the adapter has other shapes than the model", detail, _base_fix(adapter), at)


def _ranks(adapter: AdapterFacts, pairs: Mapping[str, Pair], at: Span | None) -> Iterator[Diagnostic]:
    """The rank in the tensors is that of adapter_config.json: `r`, or `rank_pattern` where a pattern matches."""
    wrong: list[str] = []
    for module, pair in pairs.items():
        ranks = {shape[axis] for half, axis in (("A", 0), ("B", 1)) if (shape := pair.get(half))}
        if ranks != {expected := _rank(adapter.config, module)}:
            wrong.append(f"{module} has rank {' and '.join(map(str, sorted(ranks)))}, its config says {expected}")
    if wrong:
        detail = f"{adapter.name}: {wrong[0]} ({len(wrong)} modules)."
        fix = (
            "adapter_config.json and adapter_model.safetensors must come from one save; the scale depends on the rank."
        )
        yield error("DC237", "the adapter's rank is not what its config says", detail, fix, at)


def _rank(config: Mapping[str, Any], module: str) -> int:
    """peft's `get_pattern_key`: a pattern is the end of a module's name, as a regular expression."""
    for pattern, rank in (config.get("rank_pattern") or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return int(rank)
    return int(config.get("r", 0))


def _other_base(model: ModelFacts, adapter: AdapterFacts, at: Span | None) -> Iterator[Diagnostic]:
    """Another name is only certain to be another model where both are ids of a hub."""
    if not adapter.base or _last(adapter.base) == _last(model.source):
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
