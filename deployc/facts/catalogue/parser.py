"""The flags of `vllm serve`, by following its argument parser's own code statement by statement.

Only the statements that such code is made of are followed: assignments, `add_argument`, loops over keywords, calls of
the methods that build the parser. A branch that cannot be decided is refused, not guessed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from deployc.facts.catalogue.keywords import derivation
from deployc.facts.catalogue.options import option
from deployc.facts.catalogue.source import Located, Tree, Unreadable, body, method
from deployc.facts.catalogue.values import UNKNOWN, Reader
from deployc.types.facts import Flag

SERVE = "vllm.entrypoints.cli.serve"


def flags(tree: Tree) -> dict[str, Flag]:
    """All options of `vllm serve` by name. Raises Unreadable where the parser is not found or adds nothing."""
    start = tree.definition(SERVE, "make_arg_parser")
    own = method(tree.definition(SERVE, "ServeSubcommand"), "subparser_init")  # has options of its own at times
    walk = Walk(Reader(tree, derivation(tree)))
    walk.function(start, {})
    if not walk.found or own is None:
        raise Unreadable(f"{start.place} adds no option")
    walk.function(own[1], {})
    return dict(sorted(walk.found.items()))


@dataclass(slots=True)
class Walk:
    """Follows functions and collects the options they add."""

    reader: Reader
    found: dict[str, Flag] = field(default_factory=dict)

    def function(self, where: Located, local: dict[str, Any]) -> Any:
        """Follow one function's statements; the value it returns, or UNKNOWN."""
        return self._block(body(where), where, local)

    def _block(self, statements: list[ast.stmt], where: Located, local: dict[str, Any]) -> Any:
        for node in statements:
            match node:
                case ast.Return(value=value):
                    return self._value(value, where, local)
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._value(value, where, local), where, local)
                case ast.AugAssign(target=target, op=ast.Add(), value=value):
                    whole = ast.BinOp(ast.parse(ast.unparse(target), mode="eval").body, ast.Add(), value)
                    self._assign(target, self._value(whole, where, local), where, local)
                case ast.Delete(targets=[ast.Subscript(value=owner, slice=key)]):
                    self._item(owner, where, local).pop(self._value(key, where, local), None)
                case ast.Expr(value=ast.Call() as call):
                    self._value(call, where, local)
                case ast.If(test=test, body=inner):
                    if self._taken(test, where, local):
                        self._block(inner, where, local)
                case ast.For():
                    self._loop(node, where, local)
        return UNKNOWN

    def _taken(self, test: ast.expr, where: Located, local: dict[str, Any]) -> bool:
        """`not …` guards what the server has (the help screen and the in-process engine do without).

        So does `'serve' not in sys.argv[1:] …` of 0.9.0: the module that its image starts has the option.
        """
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.BoolOp(op=ast.And(), values=parts) if all("not in sys.argv" in ast.unparse(p) for p in parts):
                return True
            case ast.Compare(left=left, ops=[ast.In()], comparators=[owner]):
                return self._value(left, where, local) in self._item(owner, where, local)
        raise Unreadable(f"{where.module.path}:{test.lineno}: `if {ast.unparse(test)}` cannot be decided")

    def _loop(self, node: ast.For, where: Located, local: dict[str, Any]) -> None:
        items = self._value(node.iter, where, local)
        names = (
            [n.id for n in node.target.elts if isinstance(n, ast.Name)] if isinstance(node.target, ast.Tuple) else []
        )
        if items is UNKNOWN or not names:
            raise Unreadable(f"{where.module.path}:{node.lineno}: this loop cannot be followed")
        for item in items:
            self._block(node.body, where, local | dict(zip(names, item, strict=True)))

    def _assign(self, target: ast.expr, value: Any, where: Located, local: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                local[name] = value
            case ast.Subscript(value=owner, slice=key):
                self._item(owner, where, local)[self._value(key, where, local)] = value

    def _item(self, node: ast.expr, where: Located, local: dict[str, Any]) -> dict[str, Any]:
        value = self._value(node, where, local)
        if not isinstance(value, dict):
            raise Unreadable(f"{where.module.path}:{node.lineno}: {ast.unparse(node)} is not a known map")
        return value

    def _value(self, node: ast.expr | None, where: Located, local: dict[str, Any]) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "add_argument":
                return self._add(node, where, local)
            if (target := self._method(node.func, where, local)) is not None:
                owner, cls, definition = target
                arguments = [self._value(a, where, local) for a in node.args]
                return self.function(definition, _bound(definition, arguments) | {"cls": cls, "__class__": owner})
        return self.reader.value(node, where.module, local)

    def _method(
        self, func: ast.Attribute, where: Located, local: dict[str, Any]
    ) -> tuple[Located, Located, Located] | None:
        """(defining class, class called on, method) of `Class.m`, `cls.m` and `super().m`, else None."""
        if isinstance(func.value, ast.Call) and ast.unparse(func.value) == "super()":
            cls, above = local["cls"], local["__class__"]
        else:
            cls, above = self.reader.value(func.value, where.module, local), None
        if not isinstance(cls, Located) or not isinstance(cls.node, ast.ClassDef):
            return None
        found = method(cls, func.attr, above)
        return (found[0], cls, found[1]) if found else None

    def _add(self, node: ast.Call, where: Located, local: dict[str, Any]) -> None:
        names: list[str] = []
        for argument in node.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            value = self._value(inner, where, local)
            names += value if isinstance(value, list) else [value]
        keys: dict[str, Any] = {}
        for keyword in node.keywords:
            keys |= (
                {keyword.arg: self._value(keyword.value, where, local)}
                if keyword.arg
                else self._item(keyword.value, where, local)
            )
        if not all(isinstance(name, str) for name in names):
            raise Unreadable(f"{where.module.path}:{node.lineno}: an option without a readable name")
        if names[0].startswith("-"):
            made = option(names, keys, self.reader.how.paired)
            self.found[made.name] = made


def _bound(definition: Located, arguments: list[Any]) -> dict[str, Any]:
    parameters = definition.node.args.args if isinstance(definition.node, ast.FunctionDef) else []
    names = [a.arg for a in parameters if a.arg not in ("cls", "self")]
    return dict.fromkeys(names, UNKNOWN) | dict(zip(names, arguments, strict=False))
