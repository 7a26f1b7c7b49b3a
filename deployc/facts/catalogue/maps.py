"""Keys of flags that take a map (`--compilation-config '{"mode": 3}'`): the fields of the config class behind each.

A name of the table is "compilation-config.mode"; its value says `refused`: whether the engine stops at a key that the
class does not have. Where it does not, the key is dropped without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from deployc.facts.catalogue.source import Located, Tree, Unreadable, bases, body

CLASSES = {
    "attention-config": "AttentionConfig",
    "compilation-config": "CompilationConfig",
    "ec-transfer-config": "ECTransferConfig",
    "eplb-config": "EPLBConfig",
    "kernel-config": "KernelConfig",
    "kv-events-config": "KVEventsConfig",
    "kv-transfer-config": "KVTransferConfig",
    "pooler-config": "PoolerConfig",
    "profiler-config": "ProfilerConfig",
    "speculative-config": "SpeculativeConfig",
    "structured-outputs-config": "StructuredOutputsConfig",
}
"""By flag, the class of vllm.config that its map becomes."""


def maps(tree: Tree) -> dict[str, dict[str, Any]]:
    """Flag and key -> {refused: true} or {}. Raises Unreadable where no class is found."""
    home = tree.module("vllm.config")
    found: dict[str, dict[str, Any]] = {}
    for flag, name in CLASSES.items():
        cls = tree.find(home, name) if home else None
        if isinstance(cls, Located):
            refused = {"refused": True} if flag == "speculative-config" or _forbids(cls) else {}
            found |= {f"{flag}.{key}": refused for key in _fields(cls)}
    if not found:
        raise Unreadable("vllm.config has none of the classes that flags are read into")
    return dict(sorted(found.items()))


def _forbids(cls: Located) -> bool:
    """Whether pydantic refuses keys that the class lacks: by its own decorator, or by the one of all configs."""
    decorators = [ast.unparse(one) for one in cls.node.decorator_list] if isinstance(cls.node, ast.ClassDef) else []
    if any("forbid" in one for one in decorators):
        return True
    shared = cls.module.tree.module("vllm.config.utils")
    every = shared.names.get("config") if shared else None
    return any(one.partition("(")[0] == "config" for one in decorators) and (
        isinstance(every, ast.FunctionDef) and "forbid" in ast.unparse(every)
    )


def _fields(cls: Located) -> Iterator[str]:
    """Fields that can be given; those that the class sets itself (`init=False`) and constants are none."""
    for owner in bases(cls):
        for node in body(owner):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=hint, value=value):
                    own = value is not None and "init=False" in ast.unparse(value)
                    if not name.startswith("_") and "ClassVar" not in ast.unparse(hint) and not own:
                        yield name
