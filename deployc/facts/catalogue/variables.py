"""Environment variables that a version of vLLM reads: those that `vllm/envs.py` names, and literal names elsewhere.

Of one in `envs.py` its kind and default are read where they stand there plainly; a default that is computed, or that
hangs on another variable, is left out. Of one that is read elsewhere the name alone: what becomes of it hangs on the
place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deployc.facts.catalogue.source import Located, Tree, Unreadable, dotted

_READERS = {"os.getenv", "os.environ.get", "os.environ.pop", "os.environ.setdefault", "getenv", "environ.get"}
_ENVIRONS = {"os.environ", "environ"}
_KINDS = {"int": "int", "float": "float", "bool": "bool", "maybe_convert_int": "int", "maybe_convert_bool": "bool"}


def variables(tree: Tree) -> dict[str, dict[str, Any]]:
    """Name -> {kind?, choices?, default?}, each where it is plain. Raises Unreadable where `envs.py` has no table."""
    table = tree.definition("vllm.envs", "environment_variables")
    if not isinstance(table.node, ast.Dict):
        raise Unreadable(f"{table.place}: environment_variables is no plain table")
    found = {name: _entry(node) for name, node in _entries(table.node, table)}
    for path in sorted(tree.root.glob("vllm/**/*.py")):
        for name in _elsewhere(path):
            found.setdefault(name, {})
    return dict(sorted(found.items()))


def _entries(table: ast.Dict, where: Located) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(table.keys, table.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise Unreadable(f"{where.module.path}:{value.lineno}: a variable whose name is no literal")
        yield key.value, value


def _entry(node: ast.expr) -> dict[str, Any]:
    """What stands plainly in `lambda: bool(int(os.getenv("X", "0")))` or in `env_with_choices("X", "a", ["a"])`."""
    made: dict[str, Any] = {}
    if isinstance(node, ast.Call) and dotted(node.func).startswith("env_"):
        if len(node.args) > 2 and isinstance(choices := _plain(node.args[2]), list):
            made["choices"] = choices
        if (default := _plain(node.args[1]) if len(node.args) > 1 else None) is not None:
            made["default"] = default
        return made
    if not isinstance(node, ast.Lambda):
        return made
    if kind := _kind(node.body):
        made["kind"] = kind
    reads = [call for call in ast.walk(node.body) if _reads(call) is not None]
    if len(reads) == 1 and (default := _default(reads[0])) is not None:
        made["default"] = default
    return made


def _kind(node: ast.expr) -> str:
    """The outermost converter's kind; of a comparison "bool"; "" where it is the text itself or nothing plain."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _KINDS:
            return _KINDS[name]
        case ast.Compare():
            return "bool"
    return ""


def _default(call: ast.AST) -> str | None:
    if isinstance(call, ast.Call) and len(call.args) > 1:
        default = _plain(call.args[1])
        return None if default is None or isinstance(default, list) else str(default)
    return None


def _plain(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _elsewhere(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if "environ" in text or "getenv" in text:  # most files have neither: none of them is parsed
        for node in ast.walk(ast.parse(text)):
            if (name := _reads(node)) is not None:
                yield name


def _reads(node: ast.AST) -> str | None:
    """The literal name that an expression reads of the environment, or None; what is only set is not read."""
    match node:
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if dotted(func) in _READERS:
            return name
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name)), ctx=ast.Load()) if (
            dotted(owner) in _ENVIRONS
        ):
            return name
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()], comparators=[owner]) if (
            dotted(owner) in _ENVIRONS
        ):
            return name
    return None
