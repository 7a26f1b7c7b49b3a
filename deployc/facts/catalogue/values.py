"""Expressions of the sources as values, as far as they can be known without running them.

What cannot be known is `UNKNOWN` and spreads: a list with an unknown part, an unknown default or unknown choices are
left out of the catalogue rather than written down wrongly.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deployc.facts.catalogue.hints import ClassField, class_fields, literal_values
from deployc.facts.catalogue.keywords import Derivation, keywords
from deployc.facts.catalogue.listed import comprehension, members, orders, registered
from deployc.facts.catalogue.source import Located, Module, Tree, body, dotted


class Unknown:
    """The one value that says nothing."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
_TYPES = {"int": "int", "float": "float", "str": "str", "json.loads": "json", "bool": "bool"}
_CONVERTERS = {"human_readable_int": "size", "human_readable_int_or_auto": "size"}
_FROM_TEXT = {"from_cli", "from_json"}  # of a configuration's class
_KNOWN = {"argparse.BooleanOptionalAction": "BooleanOptionalAction"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A converter given as argparse's `type`: the catalogue's word for what it accepts."""

    kind: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Evaluates expressions of one tree; `how` it makes keywords of a configuration's fields."""

    tree: Tree
    how: Derivation = field(default_factory=Derivation)

    def value(self, node: ast.expr | None, module: Module, local: Mapping[str, Any]) -> Any:
        """The value of an expression, or UNKNOWN."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return local[name] if name in local else self._name(name, module)
            case ast.List() | ast.Tuple() | ast.Set() | ast.ListComp() | ast.Dict():
                return self._collection(node, module, local)
            case ast.UnaryOp(op=ast.Not()) | ast.IfExp():
                return self._decided(node, module, local)
            case ast.BinOp(left=left, right=right, op=op):
                return _combined(op, self.value(left, module, local), self.value(right, module, local))
            case ast.JoinedStr(values=parts):
                return self._text(parts, module, local)
            case ast.Subscript(value=owner, slice=key):
                return _item(self.value(owner, module, local), self.value(key, module, local))
            case ast.Attribute():
                return self._attribute(node, module, local)
            case ast.Call():
                return self._call(node, module, local)
        return UNKNOWN

    def _name(self, name: str, module: Module) -> Any:
        found = self.tree.find(module, name)
        if isinstance(found, Located) and name in _CONVERTERS:
            return Parsed(_CONVERTERS[name])
        if isinstance(found, Located):
            node = found.node
            return self.value(node, found.module, {}) if isinstance(node, ast.expr) else found
        if found is None and name in _TYPES:
            return Parsed(_TYPES[name])
        return found if isinstance(found, Module) else UNKNOWN

    def _collection(
        self,
        node: ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.Dict,
        module: Module,
        local: Mapping[str, Any],
    ) -> Any:
        if isinstance(node, ast.Dict):
            return self._dict(node, module, local)
        if isinstance(node, ast.ListComp):
            return self._listed(node, module, local)
        return self._list(node, module, local)

    def _decided(self, node: ast.UnaryOp | ast.IfExp, module: Module, local: Mapping[str, Any]) -> Any:
        test = node.operand if isinstance(node, ast.UnaryOp) else node.test
        holds = self.value(test, module, local)
        if not isinstance(holds, bool):
            return UNKNOWN
        return (
            not holds
            if isinstance(node, ast.UnaryOp)
            else self.value(node.body if holds else node.orelse, module, local)
        )

    def _list(self, node: ast.List | ast.Tuple | ast.Set, module: Module, local: Mapping[str, Any]) -> Any:
        items: list[Any] = []
        for element in node.elts:
            value = self.value(element.value if isinstance(element, ast.Starred) else element, module, local)
            if value is UNKNOWN or (isinstance(element, ast.Starred) and not isinstance(value, list)):
                return UNKNOWN
            items += value if isinstance(element, ast.Starred) else [value]
        return items

    def _listed(self, node: ast.ListComp, module: Module, local: Mapping[str, Any]) -> Any:
        form, over, length = comprehension(node) or ("", node, 0)
        items = self.value(over, module, local) if form else UNKNOWN
        if form == "members" and isinstance(items, Located):
            return list(members(items).values()) or UNKNOWN
        return orders(items, length) if form == "orders" and isinstance(items, list) else UNKNOWN

    def _dict(self, node: ast.Dict, module: Module, local: Mapping[str, Any]) -> Any:
        made: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, module, local)
            if key is not None:
                made[self.value(key, module, local)] = value
            elif isinstance(value, dict):
                made |= value
            else:
                return UNKNOWN
        return made

    def _text(self, parts: list[ast.expr], module: Module, local: Mapping[str, Any]) -> Any:
        values = [self.value(p.value if isinstance(p, ast.FormattedValue) else p, module, local) for p in parts]
        return UNKNOWN if UNKNOWN in values else "".join(map(str, values))

    def _attribute(self, node: ast.Attribute, module: Module, local: Mapping[str, Any]) -> Any:
        name = dotted(node)
        if name in _TYPES:
            return Parsed(_TYPES[name])
        if name in _KNOWN:
            return _KNOWN[name]
        if name == "envs.VLLM_USE_V1":  # the catalogue is of the V1 engine
            return True
        owner = self.value(node.value, module, local)
        if node.attr == "value" and isinstance(owner, str | int):
            return owner  # of a member of an Enum, which is its value here
        if isinstance(owner, Located) and isinstance(owner.node, ast.ClassDef):
            if owner.node.name.endswith("Manager") and node.attr.endswith("_parsers"):
                return registered(owner, self.tree)
            if node.attr in _FROM_TEXT:
                return Parsed("json")
            field = next((f for f in class_fields(owner) if f.name == node.attr), None)
            return self.default(field) if field else self._constant(owner, node.attr)
        if isinstance(owner, Module):
            found = self.tree.find(owner, node.attr)
            return found if isinstance(found, Located) and not isinstance(found.node, ast.expr) else UNKNOWN
        return UNKNOWN

    def _constant(self, cls: Located, name: str) -> Any:
        """A class constant, such as a member of an Enum: argparse takes and shows its value."""
        for node in body(cls):
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    return self.value(value, cls.module, {})
        return UNKNOWN

    def default(self, field: ClassField) -> Any:
        """A field's default: plain, or the one of `field(...)` and `Field(...)`."""
        node = field.value
        if isinstance(node, ast.Call) and dotted(node.func) in ("field", "Field", "dataclasses.field"):
            given = {k.arg: k.value for k in node.keywords}
            factory = given.get("default_factory")
            if isinstance(factory, ast.Lambda):
                return self.value(factory.body, field.owner, {})
            if isinstance(factory, ast.Name) and factory.id in ("list", "dict", "set"):
                return {} if factory.id == "dict" else []
            first = node.args[0] if node.args else None
            node = None if factory is not None else given.get("default", first)
        return self.value(node, field.owner, {})

    def _call(self, node: ast.Call, module: Module, local: Mapping[str, Any]) -> Any:
        name = dotted(node.func)
        arguments = [self.value(a, module, local) for a in node.args if not isinstance(a, ast.Starred)]
        first = arguments[0] if arguments else UNKNOWN
        match name.rpartition(".")[2]:
            case "get_kwargs" if isinstance(first, Located):
                return {f.name: {"default": self.default(f)} | keywords(f, self.how) for f in class_fields(first)}
            case "get_field" if isinstance(first, Located):
                return self._field(first, arguments[1])
            case "get_args":
                return self._literal(node.args[0], module)
            case "optional_type" | "parse_type":
                return first
            case "int" if isinstance(first, int):
                return first
            case "list" if isinstance(first, list | dict):
                return list(first)
        if isinstance(node.func, ast.Attribute):
            return _method(self.value(node.func.value, module, local), node.func.attr, arguments)
        return UNKNOWN

    def _field(self, cls: Located, name: Any) -> Any:
        field = next((f for f in class_fields(cls) if f.name == name), None)
        return self.default(field) if field else UNKNOWN

    def _literal(self, node: ast.expr, module: Module) -> Any:
        found = self.tree.find(module, node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, Located) and isinstance(found.node, ast.Subscript):
            return list(literal_values([found.node], found.module))
        return UNKNOWN


def _combined(op: ast.operator, left: Any, right: Any) -> Any:
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if isinstance(op, ast.Mult) and numbers:
        return left * right
    alike = numbers or (type(left) is type(right) and isinstance(left, str | list))
    return left + right if isinstance(op, ast.Add) and alike else UNKNOWN


def _item(owner: Any, key: Any) -> Any:
    return owner.get(key, UNKNOWN) if isinstance(owner, dict) else UNKNOWN


def _method(owner: Any, name: str, arguments: list[Any]) -> Any:
    """The few methods that the parser code calls on plain values; those that change a value do so in place."""
    allowed: Mapping[type, Mapping[str, Callable[..., Any]]] = {
        str: {"replace": str.replace, "lower": str.lower},
        list: {"remove": list.remove, "append": list.append},
        dict: {"pop": dict.pop, "items": dict.items, "get": dict.get, "keys": list},
    }
    action = allowed.get(type(owner), {}).get(name)
    if action is None or UNKNOWN in arguments:
        return UNKNOWN
    return action(owner, *arguments)
