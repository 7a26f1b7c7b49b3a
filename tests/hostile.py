"""Texts that mean something to a shell, YAML, Compose, systemd or Docker, and every place of a deploy.yaml for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path as File
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from deployc.diagnostics import Report, Span
from deployc.source.document import Document
from deployc.spec import shape
from deployc.spec.deploy import Deploy, Path
from deployc.spec.section import OneOrMany, OrShort

KEY = "<key>"
"""Stands in a path for the name of an entry of an open map: the text becomes that name."""
_READ = json.loads((File(__file__).parent / "emit" / "data" / "hostile.json").read_text())
TEXTS: dict[str, str] = _READ["texts"] | {
    name: text * times + end for name, (text, times, end) in _READ["repeated"].items()
}

BASE: dict[str, Any] = {
    "version": 1,
    "name": "domain-qa",
    "model": {"source": "Qwen/Qwen2.5-7B-Instruct"},
    "adapters": [{"name": "qa", "source": "./adapters/qa"}],
    "hardware": {"gpu": "rtx-4090"},
    "workload": {"input_tokens": 1500, "output_tokens": 256, "concurrency": 32},
    "engine": {"name": "vllm", "version": "0.32.0"},
    "target": {"kind": "process"},
}
_BESIDE: dict[Path, Any] = {
    ("accept",): {"code": "DC402", "reason": "as agreed"},
    ("hardware", "gpu"): {"memory": "24GiB", "bandwidth": "1008GB/s"},
    ("model", "context"): {"rope": "yarn", "factor": 4},
    ("quantization", "calibration"): {"data": "./text.jsonl"},
    ("workload", "input_tokens"): {"mean": 1500, "p95": 4000},
    ("workload", "output_tokens"): {"mean": 1500, "p95": 4000},
}
"""What a section needs beside the key that is tried."""


def fields() -> list[Path]:
    """Every place of a value, a list's item and an open map's name, from the models: a new key is among them."""
    return list(dict.fromkeys(_of_model(Deploy, ())))


def _of_model(model: type[BaseModel], path: Path) -> Iterator[Path]:
    for name, field in model.model_fields.items():
        yield from _places(field.annotation, (*path, name))
        for mark in field.metadata:
            yield from _marked(mark, (*path, name))


def _places(kind: Any, path: Path) -> Iterator[Path]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _places(inner[0], path)
        for mark in inner[1:]:
            yield from _marked(mark, path)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _places(one, path)
    elif origin is list:
        yield path
        yield from _places(inner[0], (*path, 0))
    elif origin is dict:
        yield path
        yield (*path, KEY)
        yield from _places(inner[1], (*path, "NAME"))
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _of_model(kind, path)
    elif kind is Any:
        yield from (path, (*path, 0), (*path, KEY), (*path, "inner"), (*path, "inner", KEY), (*path, "inner", 0))
    elif kind is not type(None):
        assert origin is Literal or kind in (str, int, float, bool), kind
        yield path


def _marked(mark: Any, path: Path) -> Iterator[Path]:
    if isinstance(mark, OneOrMany):
        yield from (*_places(mark.item, path), *_places(mark.item, (*path, 0)))
    elif isinstance(mark, OrShort):
        yield from _of_model(mark.section, path)


def put(values: dict[str, Any], path: Path, text: str) -> None:
    """Set the text at a place, with what its section needs beside it."""
    if path[:2] in (("target", "api_key"), ("target", "hub_token")):
        values["target"].pop(path[1], None)  # env and file exclude each other
    node: Any = values
    for depth, part in enumerate(path[:-1], 1):
        missing: Any = [] if path[depth] == 0 else deepcopy(_BESIDE.get(tuple(p for p in path[:depth] if p != 0), {}))
        if isinstance(node, list):
            node[:] = node or [missing]
            node = node[0]
        else:
            if not isinstance(node.get(part), type(missing)):
                node[part] = missing
            node = node[part]
    last = path[-1]
    if last == KEY:
        node[text] = "x"
    elif isinstance(node, list):
        node[:] = [text]
    else:
        node[last] = text


def document(values: dict[str, Any]) -> Document:
    """As READ would make it of a file; every value and every key has a line of its own."""
    spans: dict[Path, Span] = {}
    keys: dict[Path, Span] = {}
    _span(values, (), spans, keys)
    return Document(values, spans, keys, {}, {}, File())


def _span(node: Any, path: Path, spans: dict[Path, Span], keys: dict[Path, Span]) -> None:
    line = 2 * len(spans) + 1
    spans[path], keys[path] = Span("deploy.yaml", line, 1, 2, "x"), Span("deploy.yaml", line + 1, 1, 2, "x")
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        _span(inner, (*path, key), spans, keys)


def shaped(values: dict[str, Any]) -> tuple[Deploy | None, Report, Document]:
    """SHAPE of these values."""
    made = document(values)
    deploy, report = shape(made)
    return (None if report.errors else deploy), report, made
