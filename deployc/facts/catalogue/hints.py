"""Type hints of configuration dataclasses: their fields, and the members of a field's type."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deployc.facts.catalogue.source import Located, Module, Unreadable, bases, body, dotted

_BUILTIN = {"str", "int", "float", "bool", "dict", "list", "tuple", "set", "bytes"}


@dataclass(frozen=True, slots=True)
class Hint:
    """One member of a union: `kind` is a builtin's name, "None", "Literal", "dataclass" or "other"."""

    kind: str
    values: tuple[Any, ...] = ()  # of a Literal
    element: tuple[Hint, ...] = ()  # of list, tuple and set


@dataclass(frozen=True, slots=True)
class ClassField:
    """One field of a dataclass: its annotation, its default as written, the docstring under it."""

    name: str
    owner: Module
    annotation: ast.expr
    value: ast.expr | None
    doc: str


def class_fields(cls: Located) -> list[ClassField]:
    """Fields in the order of `dataclasses.fields`: bases first, a redefinition keeps its place."""
    found: dict[str, ClassField] = {}
    for owner in reversed(list(bases(cls))):
        statements = body(owner)
        for node, following in zip(statements, [*statements[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if any(isinstance(n, ast.Name) and n.id in ("ClassVar", "InitVar") for n in ast.walk(node.annotation)):
                    continue
                found[node.target.id] = ClassField(
                    node.target.id, owner.module, node.annotation, node.value, _docstring(following)
                )
    return list(found.values())


def _docstring(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""


def hints(node: ast.expr, module: Module) -> tuple[Hint, ...]:
    """The members of a type hint's union, aliases resolved."""
    return tuple(dict.fromkeys(_hints(node, module)))


def _hints(node: ast.expr, module: Module) -> Iterator[Hint]:
    match node:
        case ast.Constant(value=None):
            yield Hint("None")
        case ast.Constant(value=str(text)):
            yield from _hints(ast.parse(text, mode="eval").body, module)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _hints(left, module)
            yield from _hints(right, module)
        case ast.Subscript(value=head, slice=inner):
            yield from _subscript(dotted(head).rpartition(".")[2], inner, module)
        case ast.Name(id=name) if name in _BUILTIN:
            yield Hint(name)
        case ast.Name(id=name):
            yield from _named(module.tree.find(module, name))
        case _:
            yield Hint("other")


def _subscript(head: str, inner: ast.expr, module: Module) -> Iterator[Hint]:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if head == "Literal":
        yield Hint("Literal", tuple(literal_values(parts, module)))
    elif head == "Annotated":
        yield from _hints(parts[0], module)
    elif head == "Union":
        for part in parts:
            yield from _hints(part, module)
    elif head == "Optional":
        yield from _hints(parts[0], module)
        yield Hint("None")
    elif head in ("list", "tuple", "set", "dict"):
        yield Hint(head, element=hints(parts[0], module) if head != "dict" else ())
    else:  # type[Executor], Callable[…], SkipValidation[…]
        yield from _hints(parts[0], module) if head == "SkipValidation" else [Hint("other")]


def _named(found: Located | Module | None) -> Iterator[Hint]:
    match found:
        case Located(node=ast.ClassDef() as node):
            names = {dotted(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases}
            if any("dataclass" in d or d == "config" for d in _decorators(node)):
                yield Hint("dataclass")
            elif any(n.startswith(("dict", "UserDict")) for n in names):
                yield Hint("dict")
            else:
                yield Hint("other")
        case Located(module=module, node=ast.expr() as value):
            yield from _hints(value, module)
        case _:
            yield Hint("other")


def _decorators(node: ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        yield dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2]


def literal_values(parts: list[ast.expr], module: Module) -> Iterator[Any]:
    """Values of `Literal[…]`; a Literal inside it is flattened, as typing does."""
    for part in parts:
        match part:
            case ast.Constant(value=value):
                yield value
            case ast.Starred(value=ast.Subscript(slice=inner)) | ast.Subscript(slice=inner):
                yield from literal_values(inner.elts if isinstance(inner, ast.Tuple) else [inner], module)
            case ast.Name(id=name):
                found = module.tree.find(module, name)
                if not isinstance(found, Located) or not isinstance(found.node, ast.expr):
                    raise Unreadable(f"{module.path}:{part.lineno}: {name} in a Literal is not an alias")
                yield from literal_values([found.node], found.module)
            case _:
                raise Unreadable(f"{module.path}:{part.lineno}: {ast.unparse(part)} in a Literal")
