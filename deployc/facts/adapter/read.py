"""Adapter facts: adapter_config.json and the header of adapter_model.safetensors, or of adapter_model.bin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deployc.facts import faults
from deployc.facts.adapter import pickled
from deployc.facts.headers import read_header
from deployc.facts.source import Entry, Source, pinned, read_json
from deployc.types.facts import AdapterFacts
from deployc.types.groups import Tensor, compress
from deployc.types.merging import BY_PEFT

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PICKLE = "adapter_model.bin"
_LARGEST = 2.0**127
"""Of a scale: merges and engines compute in float32, which ends below the next power of two."""


def adapter_facts(name: str, source: Source, shown: str) -> AdapterFacts:
    """All that is known of an adapter without its weights. Raises Fault: the source's own, and DC230-DC232.

    `rank` is 0 for a kind that has none.
    """
    files = source.files()
    if CONFIG not in files:
        model = "This is a whole model: name it as model.source." if "config.json" in files else ""
        raise faults.missing_file(CONFIG, source.where, model or "Name the folder that peft's save_pretrained wrote.")
    config = read_json(source, CONFIG)
    kind = config.get("peft_type")
    if not isinstance(kind, str) or (kind != "LORA" and kind not in BY_PEFT):
        raise faults.adapter_kind(name, f"peft_type is {kind!r}, which changes no weights or is not known.")
    tensors = _tensors(name, source, files)
    if kind == "LORA" and (wrong := _wrong_numbers(config)):
        raise faults.bad_adapter(name, source.where, f"{wrong} in {CONFIG}; positive numbers are expected.")
    if wrong := _wrong_names(config):
        raise faults.bad_adapter(name, source.where, f"{wrong} in {CONFIG}; names are expected, as peft writes them.")
    return AdapterFacts(
        name=name,
        source=shown,
        revision=source.revision,
        config=config,
        rank=_rank(config, tensors),
        base=str(config.get("base_model_name_or_path") or ""),
        target_modules=_targets(config.get("target_modules"), tensors),
        tensors=compress(tensors),
        files=pinned(files),
    )


def weights_file(files: Iterable[str]) -> str:
    """The file with the weights: the safetensors one where there are both."""
    return WEIGHTS if WEIGHTS in files else PICKLE


def _tensors(name: str, source: Source, files: Mapping[str, Entry]) -> list[Tensor]:
    """Names, dtypes and shapes. Raises Fault DC202, DC204, DC232."""
    if WEIGHTS in files:
        return read_header(WEIGHTS, files[WEIGHTS].size, source.where, source.range)
    if PICKLE not in files:
        raise faults.missing_file(WEIGHTS, source.where, "Save the adapter again with peft's save_pretrained.")
    found = pickled.read(name, source.where, files[PICKLE].size, lambda a, b: source.range(PICKLE, a, b))
    return [(tensor, one.storage.dtype, one.shape) for tensor, one in found.items()]


def _rank(config: Mapping[str, Any], tensors: Sequence[Tensor]) -> int:
    """The largest of any module; 0 where the kind has none. Experts in one tensor have theirs side by side."""
    ranks = [shape[0] for t, _, shape in tensors if t.endswith(".lora_A.weight") and shape and ".experts.l" not in t
             and ".base_layer.lora_" not in t]  # fmt: skip
    said = config.get("r")
    return max(ranks, default=said if type(said) is int else 0)


def odd(config: Mapping[str, Any]) -> str:
    """What in adapter_config.json no adapter of a known kind has; else ""."""
    kind = config.get("peft_type")
    if not isinstance(kind, str) or (kind != "LORA" and kind not in BY_PEFT):
        return f"`peft_type` is {kind!r}"
    return (_wrong_numbers(config) if kind == "LORA" else "") or _wrong_names(config)


def _wrong_numbers(config: Mapping[str, Any]) -> str:
    """The first rank or alpha that is no positive number, or pattern that is no regular expression; else ""."""
    if type(config.get("r")) is not int or config["r"] < 1:
        return f"`r` is {config.get('r')!r}"
    if not _is_positive(config.get("lora_alpha")):
        return f"`lora_alpha` is {config.get('lora_alpha')!r}"
    for key, whole in (("rank_pattern", True), ("alpha_pattern", False)):
        patterns = config.get(key) or {}
        if not isinstance(patterns, dict):
            return f"`{key}` is {patterns!r}"
        for pattern, value in patterns.items():
            try:
                re.compile(pattern)
            except re.error as wrong:
                return f"`{key}` has the pattern {pattern!r} ({wrong})"
            if not _is_positive(value) or (whole and type(value) is not int):
                return f"`{key}` gives {value!r} for {pattern!r}"
    return ""


def _wrong_names(config: Mapping[str, Any]) -> str:
    """The first list of modules or tokens that peft does not write so; else ""."""
    for key in ("target_modules", "modules_to_save", "target_parameters"):
        value = config.get(key)
        if not (value is None or (isinstance(value, str) and key == "target_modules") or _all_of(value, str)):
            return f"`{key}` is {value!r}"
    tokens = config.get("trainable_token_indices")
    lists = list(tokens.values()) if isinstance(tokens, dict) else [tokens]
    if tokens is not None and not all(_all_of(one, int) for one in lists):
        return f"`trainable_token_indices` is {tokens!r}"
    return f"`bias` is {config['bias']!r}" if not isinstance(config.get("bias", "none"), str) else ""


def _all_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in value)


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= _LARGEST


def _targets(named: Any, tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """The modules that the config lists; where it has a pattern ("all-linear"), those that the tensors name."""
    if isinstance(named, list) and all(isinstance(n, str) for n in named):
        return tuple(sorted(named))
    modules = {name.removesuffix(".lora_A.weight").rpartition(".")[2] for name, _, _ in tensors if ".lora_A." in name}
    return tuple(sorted(modules))
