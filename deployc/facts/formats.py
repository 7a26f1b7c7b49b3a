"""Reads profiles/engines/formats.json: what a version of the engine does with formats of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from deployc.facts.catalogue.history import within
from deployc.facts.codec import decode
from deployc.facts.engine_memory import held
from deployc.facts.engine_table import engine_table
from deployc.types.formats import Formats, Method

FILE = "formats.json"


def formats(version: str) -> Formats:
    """As of `version`; an unreadable file is a broken installation."""
    read = engine_table(FILE)
    values, kernels = held(FILE, version), read["kernels"]
    lists = {method: [kernels[name] for name in values.pop(method)] for method in get_args(Method)}
    padded = (e["since"] for e in read["behaviours"]["packed"] if any(kernels[name]["pads"] for name in e["value"]))
    values |= {"kernels": lists, "pads_since": next(padded, ""), "adapted_embeddings": _adapted(read, version)}
    return decode(Formats, values)


def _adapted(read: Mapping[str, Any], version: str) -> list[str]:
    """Architectures of which this version has a LoRA layer for the embeddings."""
    spans = read["adapted_embeddings"]["architectures"]
    return [name for name, (since, until) in spans.items() if within(version, since, until or "")]
