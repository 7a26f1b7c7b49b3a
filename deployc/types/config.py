"""config.json as plain values: the language model's part of it, its quantization, and a key put in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]

ABSENT = object()
"""What `put` says of a key that was not there; null is a value."""

_LANGUAGE = ("text_config", "llm_config")
"""Where models with several modalities have their language model (InternVL's own files: `llm_config`)."""


def put(config: Any, path: list[str], value: Any) -> tuple[Any, Config]:
    """What stood at a path of keys, and a copy in which `value` does. Raises LookupError where the way is no object."""
    if not isinstance(config, Mapping):
        raise LookupError(path[0])
    first, *rest = path
    before = config.get(first, ABSENT)
    if not rest:
        return before, {**config, first: value}
    before, inner = put(before, rest, value)
    return before, {**config, first: inner}


def language(config: Config) -> Config:
    """The object that holds the language model's keys: nested, or the whole."""
    return next((config[key] for key in _LANGUAGE if isinstance(config.get(key), Mapping)), config)


def quantization(config: Config) -> Config:
    """What config.json says of its quantization; empty = the checkpoint is not quantized.

    `quantization_config`, in older files of compressed-tensors `compression_config`; null is none
    (vllm/config/model.py, 0.33.0).
    """
    said = config.get("quantization_config") or config.get("compression_config")
    return said if isinstance(said, Mapping) else {}
