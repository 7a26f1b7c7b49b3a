"""Values of --quantization that a version knows, and what its class asks of the card and of the served type.

`least` is what `get_min_capability` returns, as [major, minor]; absent where the class names none. `dtypes` are those
of `get_supported_act_dtypes`. A method that moved to a package of its own is told by the page on it in the version's
own documentation: `plugin` names the package. `deprecated`: the engine warns that it goes, or refuses it unless told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from deployc.facts.catalogue.hints import literal_values
from deployc.facts.catalogue.source import Located, Module, Tree, Unreadable, body, method

_HOME = "vllm.model_executor.layers.quantization"
_PAGES = {"gguf": "docs/features/quantization/gguf.md", "bitsandbytes": "docs/features/quantization/bnb.md"}
"""The methods that have moved since 0.8, by the page that says where to."""
_DTYPES = {"half": "float16", "float": "float32"}


def methods(tree: Tree) -> dict[str, dict[str, Any]]:
    """Name -> {least?, dtypes?, plugin?, deprecated?}. Raises Unreadable where list or classes are not found."""
    home = tree.module(_HOME)
    if home is None:
        raise Unreadable(f"{_HOME} is not in the sources")
    classes, shorthands = dict(_classes(home)), _shorthands(tree)
    listed = home.names.get("DEPRECATED_QUANTIZATION_METHODS")
    going = ast.literal_eval(listed) if isinstance(listed, ast.List) else []
    found: dict[str, dict[str, Any]] = {}
    for name in _names(home):
        cls = classes.get(name) or classes.get("online" if name in shorthands else "")
        found[name] = (_asked(cls) if cls else {}) | ({"deprecated": True} if name in going else {})
    for name, page in _PAGES.items():
        if name not in found and (package := _package(tree, page)):
            found[name] = {"plugin": package}
    return dict(sorted(found.items()))


def _names(home: Module) -> list[str]:
    """The Literal that `--quantization` is checked against; before there was one, the list itself."""
    node = home.names.get("QuantizationMethods", home.names.get("QUANTIZATION_METHODS"))
    if isinstance(node, ast.List):
        return [str(ast.literal_eval(value)) for value in node.elts]
    if not isinstance(node, ast.expr):
        raise Unreadable(f"{home.path}: no list of quantization methods")
    return [str(value) for value in literal_values([node], home)]


def _classes(home: Module) -> Iterator[tuple[str, Located]]:
    """`method_to_config` of `get_quantization_config`: it imports its classes itself, inside the function."""
    found = home.tree.find(home, "get_quantization_config")
    if not isinstance(found, Located):
        raise Unreadable(f"{home.path} has no get_quantization_config")
    local = Module(home.tree, home.path, "")
    local.read([node for node in ast.walk(found.node) if isinstance(node, ast.ImportFrom | ast.Assign | ast.AnnAssign)])
    table = local.names.get("method_to_config")
    if not isinstance(table, ast.Dict):
        raise Unreadable(f"{found.place}: no method_to_config")
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Name):
            cls = _class(local, value.id) or _class(home, value.id)
            if cls is not None:
                yield str(key.value), cls


def _class(module: Module, name: str) -> Located | None:
    """What a name means there, through a variable that stands for one of several classes: the last of them."""
    found = module.tree.find(module, name)
    if isinstance(found, Located) and isinstance(found.node, ast.Name):
        return _class(found.module, found.node.id)
    return found if isinstance(found, Located) and isinstance(found.node, ast.ClassDef) else None


def _shorthands(tree: Tree) -> list[str]:
    """Names of online quantization, which share the class of "online"."""
    config = tree.module("vllm.config.quantization")
    node = config.names.get("_ONLINE_SHORTHANDS") if config else None
    return [str(k.value) for k in node.keys if isinstance(k, ast.Constant)] if isinstance(node, ast.Dict) else []


def _asked(cls: Located) -> dict[str, Any]:
    made: dict[str, Any] = {}
    match _returned(cls, "get_min_capability"):
        case ast.Constant(value=int(number)) if number > 0:
            made["least"] = [number // 10, number % 10]
    dtypes = _returned(cls, "get_supported_act_dtypes")
    if isinstance(dtypes, ast.List) and (named := re.findall(r"torch\.(\w+)", ast.unparse(dtypes))):
        made["dtypes"] = sorted(_DTYPES.get(name, name) for name in named)
    return made


def _returned(cls: Located, name: str) -> ast.expr | None:
    """What a method returns at its end: other values stand under conditions of other platforms."""
    found = method(cls, name)
    last = body(found[1])[-1] if found else None
    return last.value if isinstance(last, ast.Return) else None


def _package(tree: Tree, page: str) -> str:
    try:
        found = re.search(r"install (vllm-\w+-plugin)", tree.text(page))
    except Unreadable:
        return ""
    return found[1] if found else ""
