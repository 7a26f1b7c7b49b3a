"""The file as written, for rules that look at several keys at once: raw values, present or not, with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deployc.diagnostics import Span
from deployc.source.tree import Path


@dataclass(frozen=True, slots=True)
class Written:
    """Values as READ made them; each may be of any type, as nothing has been checked yet."""

    values: Mapping[str, Any]
    spans: Mapping[Path, Span]
    keys: Mapping[Path, Span]

    def get(self, *path: str | int) -> Any:
        """The value at a path, None where the file has none."""
        node: Any = self.values
        for part in path:
            if isinstance(node, Mapping):
                node = node.get(part)
            elif isinstance(node, list) and isinstance(part, int) and part < len(node):
                node = node[part]
            else:
                return None
        return node

    def section(self, *path: str | int) -> dict[str, Any]:
        """The map at a path; empty where there is none."""
        node = self.get(*path)
        return node if isinstance(node, dict) else {}

    def items(self, *path: str | int) -> list[Any]:
        """The list at a path; empty where there is none."""
        node = self.get(*path)
        return node if isinstance(node, list) else []

    def whole(self, *path: str | int) -> int | None:
        """The whole number at a path, None where there is none."""
        node = self.get(*path)
        return node if isinstance(node, int) and not isinstance(node, bool) else None

    def at(self, *path: str | int) -> Span | None:
        """Where a value stands, or the nearest map around it."""
        return next((self.spans[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.spans), None)

    def at_key(self, *path: str | int) -> Span | None:
        """Where the key of a value stands, or the nearest key around it; the file's first line at last."""
        return next((self.keys[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.keys), self.at())

    def leaves(self) -> Iterator[tuple[Path, Any]]:
        """Every value that is neither map nor list, with its path."""
        return _leaves(self.values, ())


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, index))
    else:
        yield path, node
