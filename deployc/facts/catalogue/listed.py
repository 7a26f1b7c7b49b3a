"""What the sources list without writing it as one list: members of an Enum, classes that registered under a name."""

from __future__ import annotations

import ast
from itertools import permutations
from typing import Any

from deployc.facts.catalogue.source import Located, Module, Tree, body, dotted


def members(cls: Located) -> dict[str, Any]:
    """The plain values of an Enum by name; none of another class."""
    found: dict[str, Any] = {}
    if isinstance(cls.node, ast.ClassDef) and any("Enum" in dotted(base) for base in cls.node.bases):
        for node in body(cls):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                    found[name] = value
    return found


def orders(items: list[str], length: int) -> list[str]:
    """`[",".join(p) for p in permutations(items, r=length)]`."""
    return [",".join(each) for each in permutations(items, length)]


def comprehension(node: ast.ListComp) -> tuple[str, ast.expr, int] | None:
    """What is listed, over what, and how many of each: "members" or "orders"; None for a form that is not known."""
    match node:
        case ast.ListComp(
            elt=ast.Attribute(value=ast.Name(id=each), attr="value"),
            generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[])],
        ) if each == name:
            return "members", over, 1
        case ast.ListComp(
            elt=ast.Call(func=ast.Attribute(value=ast.Constant(value=","), attr="join"), args=[ast.Name(id=each)]),
            generators=[
                ast.comprehension(
                    target=ast.Name(id=name),
                    iter=ast.Call(
                        func=ast.Name(id="permutations"),
                        args=[over],
                        keywords=[ast.keyword(arg="r", value=ast.Constant(value=int(length)))],
                    ),
                    ifs=[],
                )
            ],
        ) if each == name:
            return "orders", over, length
    return None


def registered(manager: Located, tree: Tree) -> dict[str, Located]:
    """Classes of a package by the name that they registered under with its manager, `@Manager.register_module("name")`.

    Of the modules that the package's own `__init__` imports: nobody else's are there when the parser is built.
    """
    assert isinstance(manager.node, ast.ClassDef)  # noqa: S101  the caller's match
    package = tree.module(manager.module.path.rpartition("/")[0].replace("/", "."))
    found: dict[str, Located] = {}
    for name, _ in (package.imports if package else {}).values():
        if (module := tree.module(name)) is not None:
            found |= _names(module, f"{manager.node.name}.register_module")
    return found


def _names(module: Module, register: str) -> dict[str, Located]:
    found: dict[str, Located] = {}
    for cls in module.names.values():
        for decorator in cls.decorator_list if isinstance(cls, ast.ClassDef) else ():
            if isinstance(decorator, ast.Call) and dotted(decorator.func) == register:
                texts = [n.value for a in decorator.args for n in ast.walk(a) if isinstance(n, ast.Constant)]
                found |= {text: Located(module, cls) for text in texts if isinstance(text, str)}
    return found
