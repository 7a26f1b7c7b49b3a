"""Names that a version's registries hold: classes of models, parsers of tool calls and of reasoning.

Of flags whose parser leaves the value open, for plugins, the values of the engine itself are read too.
A name of the table is "architectures.LlamaForCausalLM", "tool-call-parser.hermes" or "reasoning-parser.qwen3". Of a
model's class `lora` says that adapters can be served on it, `transformers` that it runs by transformers' own class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from deployc.facts.catalogue.hints import literal_values
from deployc.facts.catalogue.listed import registered
from deployc.facts.catalogue.source import Located, Module, Tree, Unreadable, bases

MODELS = "vllm.model_executor.models"
PARSERS = {
    "tool-call-parser": (
        ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers"),
        "_TOOL_PARSERS_TO_REGISTER",
        "ToolParserManager",
    ),
    "reasoning-parser": (
        ("vllm.reasoning", "vllm.entrypoints.openai.reasoning_parsers"),
        "_REASONING_PARSERS_TO_REGISTER",
        "ReasoningParserManager",
    ),
}
"""By flag: where the package of its parsers may lie, its table, and before there was one the manager's class."""

LISTS = {
    "compilation-config.cudagraph_mode": ("vllm.config.compilation", "CUDAGraphMode"),
    "kv-cache-dtype": ("vllm.config.cache", "CacheDType"),
    "load-format": ("vllm.model_executor.model_loader", "LoadFormats"),
    "speculative-config.method": ("vllm.config.speculative", "SpeculativeMethod"),
}
"""By flag, or key of a flag's map, the Literal or Enum of its values, of which the parser itself knows nothing in some
versions. Where the module is not there the classes are older than pydantic, which holds values to them."""


def registries(tree: Tree) -> dict[str, dict[str, Any]]:
    """All of them. Raises Unreadable where the models' table or a package of parsers is not found."""
    found = {f"architectures.{name}": what for name, what in _architectures(tree)}
    for flag in PARSERS:
        found |= {f"{flag}.{name}": {} for name in _parsers(tree, flag)}
    for flag, (home, name) in LISTS.items():
        module = tree.module(home)
        node = module.names.get(name) if module else None
        if module is not None and isinstance(node, ast.expr):
            found |= {f"{flag}.{value}": {} for value in literal_values([node], module)}
        elif module is not None and isinstance(node, ast.ClassDef):
            found |= {f"{flag}.{value}": {} for value in _members(node)}
    return dict(sorted(found.items()))


def _members(enum: ast.ClassDef) -> list[str]:
    assigned = (node for node in enum.body if isinstance(node, ast.Assign))
    return [target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)]


def _architectures(tree: Tree) -> Iterator[tuple[str, dict[str, Any]]]:
    table = tree.definition(f"{MODELS}.registry", "_VLLM_MODELS")
    entries = dict(_entries(table))
    if not entries:
        raise Unreadable(f"{table.place}: _VLLM_MODELS is no plain table")
    for name, (file, cls) in entries.items():
        what: dict[str, Any] = {"transformers": True} if file.startswith("transformers") else {}
        if _serves_adapters(tree, file, cls):
            what["lora"] = True
        yield name, what


def _entries(table: Located) -> Iterator[tuple[str, tuple[str, str]]]:
    """Of a dict of tuples, and of those that it takes in by `**`."""
    if not isinstance(table.node, ast.Dict):
        raise Unreadable(f"{table.place}: a registry that is no dict")
    for key, value in zip(table.node.keys, table.node.values, strict=True):
        match key, value:
            case None, ast.Name(id=name) if isinstance(inner := table.module.tree.find(table.module, name), Located):
                yield from _entries(inner)
            case None, ast.DictComp():
                continue  # a choice of those that another table has
            case (
                ast.Constant(value=str(name)),
                ast.Tuple(elts=[ast.Constant(value=str(file)), ast.Constant(value=str(cls))]),
            ):
                yield name, (file, cls)
            case _:
                raise Unreadable(f"{table.module.path}:{value.lineno}: an entry that is no class of a file")


def _serves_adapters(tree: Tree, file: str, cls: str) -> bool:
    """Whether its class or a base is SupportsLoRA (`supports_lora` of vllm/model_executor/models/interfaces.py)."""
    module = tree.module(f"{MODELS}.{file}")
    found = tree.find(module, cls) if module else None
    return isinstance(found, Located) and any(
        isinstance(base.node, ast.ClassDef) and base.node.name == "SupportsLoRA" for base in bases(found)
    )


def _parsers(tree: Tree, flag: str) -> list[str]:
    homes, table, manager = PARSERS[flag]
    package = next((found for home in homes if (found := tree.module(home)) is not None), None)
    if package is None:
        raise Unreadable(f"no package of parsers for --{flag}")
    return list(_listed(package, table) or _registered(package, manager))


def _listed(package: Module, table: str) -> list[str]:
    node = package.names.get(table)
    keys = node.keys if isinstance(node, ast.Dict) else []
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def _registered(package: Module, manager: str) -> list[str]:
    found = package.tree.find(package, manager)
    names = list(registered(found, package.tree)) if isinstance(found, Located) else []
    if not names:
        raise Unreadable(f"{package.path}: no parser registers with {manager}")
    return names
