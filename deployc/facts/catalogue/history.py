"""What changed from version to version, in one table: an entry a change, so that a new version is a diff of changes.

Read of versions {version: {name: value}} becomes {name: [[since, value], …]}, oldest first; a value of null says that
from that version on there is none of that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.facts.engine import release

History = Mapping[str, Sequence[Sequence[Any]]]
"""Name -> [since, value], by rising version."""


def fold(read: Mapping[str, Mapping[str, Any]]) -> dict[str, list[list[Any]]]:
    """All versions as one history, names sorted."""
    history: dict[str, list[list[Any]]] = {name: [] for name in sorted({n for values in read.values() for n in values})}
    for version in sorted(read, key=release):
        for name, entries in history.items():
            value = read[version].get(name)
            if value != (entries[-1][1] if entries else None):
                entries.append([version, value])
    return history


def at(history: History, version: str) -> dict[str, Any]:
    """What a version has, in the order of the history."""
    asked, found = release(version), {}
    for name, entries in history.items():
        for since, value in reversed(entries):
            if release(since) <= asked:
                if value is not None:
                    found[name] = value
                break
    return found
