"""The tree between YAML and models: scalars, maps and lists with their place in a file, and how overlays merge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deployc.diagnostics import Span

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Scalar:
    """A leaf. `plain` = written without quotes, so that YAML's own rules decide its type."""

    span: Span
    text: str
    plain: bool
    value: Any


@dataclass(slots=True)
class Map:
    """A mapping; `keys` are the places of the keys themselves."""

    span: Span
    entries: dict[str, Node]
    keys: dict[str, Span]


@dataclass(slots=True)
class Seq:
    """A list."""

    span: Span
    items: list[Node]


Node = Scalar | Map | Seq


def merged(base: Node, over: Node) -> Node:
    """`over` laid on `base`: maps merge key by key, anything else replaces; every value keeps its own place."""
    if not (isinstance(base, Map) and isinstance(over, Map)):
        return over
    entries = dict(base.entries)
    for key, value in over.entries.items():
        entries[key] = merged(entries[key], value) if key in entries else value
    return Map(over.span, entries, {**base.keys, **over.keys})


def plain(node: Node) -> Any:
    """The values alone, as dicts, lists and scalars."""
    if isinstance(node, Map):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, Seq):
        return [plain(item) for item in node.items]
    return node.value


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every node with its path, parents first."""
    yield path, node
    if isinstance(node, Map):
        for key, value in node.entries.items():
            yield from walk(value, (*path, key))
    elif isinstance(node, Seq):
        for index, item in enumerate(node.items):
            yield from walk(item, (*path, index))
