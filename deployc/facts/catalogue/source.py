"""A source tree as syntax trees: names are resolved through assignments and imports, nothing is imported.

What a name is at run time counts: of `if TYPE_CHECKING: A else: B` it is B.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Read = tuple[Any, str]
"""A value and the place it was read at."""


class Unreadable(Exception):
    """The sources are not shaped as this reader expects: it must be mended, a guess is not allowed."""


class Absent(Unreadable):
    """A file that the sources do not hold: a wheel, where no source package was published, has no Dockerfile."""


@dataclass(frozen=True, slots=True)
class Located:
    """A definition and the module it stands in; `node` is a class, a function, or the value of an assignment."""

    module: Module
    node: ast.AST

    @property
    def place(self) -> str:
        """ "vllm/config/cache.py:68" """
        return f"{self.module.path}:{getattr(self.node, 'lineno', 0)}"


class Module:
    """One file: what each top-level name stands for, by its last run-time definition."""

    def __init__(self, tree: Tree, path: str, text: str) -> None:
        self.tree = tree
        self.path = path
        self.names: dict[str, ast.AST] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []  # modules whose names are all taken in
        self.read(ast.parse(text).body)

    def read(self, body: list[ast.stmt]) -> None:
        """Take in statements: a later definition of a name stands in place of an earlier one."""
        for node in body:
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    self.names[name] = node
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.names[name] = value
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    self.stars.append(self._absolute(node))
                case ast.ImportFrom():
                    self.imports |= {a.asname or a.name: (self._absolute(node), a.name) for a in node.names}
                case ast.Import():
                    self.imports |= {a.asname or a.name: (a.name, None) for a in node.names}
                case ast.If() | ast.Try():
                    self.read(node.body)
                    self.read(node.orelse)

    def _absolute(self, node: ast.ImportFrom) -> str:
        package = self.path.removesuffix(".py").split("/")[: -node.level] if node.level else []
        return ".".join([*package, *([node.module] if node.module else [])])


class Tree:
    """The unpacked sources of one version, read file by file as names lead there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}

    @property
    def wheel(self) -> bool:
        """Whether it is an unpacked wheel: the engine's own modules, without what it was built from."""
        return any(self.root.glob("vllm-*.dist-info"))

    def module(self, dotted: str) -> Module | None:
        """The module of that name, or None where the tree has no such file (another package)."""
        if dotted not in self._modules:
            base = dotted.replace(".", "/")
            path = next((p for p in (f"{base}.py", f"{base}/__init__.py") if (self.root / p).is_file()), None)
            self._modules[dotted] = Module(self, path, self.text(path)) if path else None
        return self._modules[dotted]

    def text(self, path: str) -> str:
        """A file's text. Raises Absent where the tree lacks it."""
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except OSError:
            raise Absent(f"{path} is not in the sources") from None

    def find(self, module: Module, name: str) -> Located | Module | None:
        """What `name` is in `module`, followed through imports; None where it leads outside the tree."""
        seen: set[tuple[str, str]] = set()
        while (module.path, name) not in seen:
            seen.add((module.path, name))
            if name in module.names:
                return Located(module, module.names[name])
            if name not in module.imports:
                return self._starred(module, name)
            dotted, inner = module.imports[name]
            whole = self.module(dotted if inner is None else f"{dotted}.{inner}")
            target = self.module(dotted)
            if inner is None or (whole is not None and (target is None or inner not in target.names)):
                return whole
            if target is None:
                return None
            module, name = target, inner
        return None

    def _starred(self, module: Module, name: str) -> Located | Module | None:
        """The name among those that `from … import *` takes in."""
        known = (self.module(star) for star in module.stars)
        return next((found for one in known if one and (found := self.find(one, name)) is not None), None)

    def definition(self, dotted: str, name: str) -> Located:
        """A top-level definition that must be there. Raises Unreadable."""
        module = self.module(dotted)
        found = self.find(module, name) if module else None
        if not isinstance(found, Located):
            raise Unreadable(f"{dotted} has no {name}")
        return found


def body(where: Located) -> list[ast.stmt]:
    """The statements of a class or function; none of anything else."""
    return where.node.body if isinstance(where.node, ast.ClassDef | ast.FunctionDef) else []


def bases(cls: Located) -> Iterator[Located]:
    """The class and its bases inside the tree, nearest first."""
    yield cls
    for base in cls.node.bases if isinstance(cls.node, ast.ClassDef) else []:
        if isinstance(base, ast.Name):
            found = cls.module.tree.find(cls.module, base.id)
            if isinstance(found, Located):
                yield from bases(found)


def method(cls: Located, name: str, above: Located | None = None) -> tuple[Located, Located] | None:
    """The class that defines a method and the method: the nearest, or with `above` the nearest beyond that class."""
    owners = list(bases(cls))
    for owner in owners[owners.index(above) + 1 :] if above else owners:
        for node in body(owner):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return owner, Located(owner.module, node)
    return None


@cache
def dotted(node: ast.expr) -> str:
    """ "a.b.c" of a chain of attributes, else ""."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value)
            return f"{owner}.{attr}" if owner else ""
    return ""
