"""Attention backends that a version knows by name: the members of the enumeration in which it looks them up."""

from __future__ import annotations

import ast
from typing import Any

from deployc.facts.catalogue.source import Located, Tree, Unreadable, body

HOMES = (
    ("vllm.v1.attention.backends.registry", "AttentionBackendEnum"),
    ("vllm.attention.backends.registry", "AttentionBackendEnum"),
    ("vllm.attention.backends.registry", "_Backend"),
    ("vllm.platforms.interface", "_Backend"),
)
"""Where it stands, newest first."""


def backends(tree: Tree) -> dict[str, dict[str, Any]]:
    """Name -> nothing more yet. Raises Unreadable where no enumeration is found."""
    for dotted, name in HOMES:
        module = tree.module(dotted)
        found = tree.find(module, name) if module else None
        if isinstance(found, Located) and (names := _members(found)):
            return {one: {} for one in sorted(names)}
    raise Unreadable(f"no attention backends in {' or '.join(dotted for dotted, _ in HOMES)}")


def _members(enumeration: Located) -> list[str]:
    return [
        node.targets[0].id
        for node in body(enumeration)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    ]
