"""Facts as plain JSON values and back, checked field by field against their types.

`encode` leaves out fields that have their default. `decode` refuses a missing, unknown or mistyped field and says
where it stands; it compiles one reader a type, so that a lockfile is read in a few milliseconds.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any], Any]


class Malformed(ValueError):
    """A value that is not of its type; `where` is its dotted path, filled in on the way up."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.where = ""
        super().__init__(why)

    def under(self, key: str | int) -> Malformed:
        """The same, one level further out."""
        self.where = f"{key}.{self.where}" if self.where else str(key)
        return self


def encode(value: Any) -> Any:
    """Dataclasses as objects without the fields that have their default, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(v) for f in fields(value) if (v := getattr(value, f.name)) != _default(f)}
    if isinstance(value, Mapping):
        return {str(key): encode(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    return value


def decode(kind: type[T], value: Any) -> T:
    """`value` as `kind`. Raises Malformed."""
    reader: Reader = _reader(kind)  # type: ignore[arg-type]  # every type is hashable
    made: T = reader(value)
    return made


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


@cache
def _reader(kind: Any) -> Reader:
    if kind is Any:
        return lambda value: value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _optional(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_reader(arguments[1]))
    if is_dataclass(kind):
        return _object(kind)
    return _plain(kind)


def _plain(kind: type) -> Reader:
    allowed = (int, float) if kind is float else (kind,)

    def read(value: Any) -> Any:
        if type(value) not in allowed:
            raise Malformed(f"{kind.__name__} is expected, not {value!r:.60}")
        return value

    return read


def _literal(allowed: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in allowed:
            raise Malformed(f"one of {', '.join(map(str, allowed))} is expected, not {value!r:.60}")
        return value

    return read


def _optional(arguments: tuple[Any, ...]) -> Reader:
    (kind,) = (argument for argument in arguments if argument is not type(None))
    inner = _reader(kind)
    return lambda value: None if value is None else inner(value)


def _tuple(arguments: tuple[Any, ...]) -> Reader:
    size = None if arguments[-1] is Ellipsis else len(arguments)
    inner = _reader(arguments[0])

    def read(value: Any) -> Any:
        if not isinstance(value, list) or (size is not None and len(value) != size):
            raise Malformed(f"a list{f' of {size}' if size else ''} is expected, not {value!r:.60}")
        return tuple(_each(inner, enumerate(value)).values())

    return read


def _mapping(inner: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Malformed(f"an object is expected, not {value!r:.60}")
        return _each(inner, value.items())

    return read


def _each(inner: Reader, items: Any) -> dict[Any, Any]:
    made = {}
    for key, value in items:
        try:
            made[key] = inner(value)
        except Malformed as wrong:
            raise wrong.under(key) from None
    return made


def _object(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {f.name: _reader(hints[f.name]) for f in fields(kind)}
    required = {f.name for f in fields(kind) if _default(f) is MISSING}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Malformed(f"an object is expected, not {value!r:.60}")
        if lacking := required - value.keys():
            raise Malformed("it is missing").under(min(lacking))
        if unknown := value.keys() - readers.keys():
            raise Malformed("there is no such field").under(min(unknown))
        made = {}
        for name, item in value.items():
            try:
                made[name] = readers[name](item)
            except Malformed as wrong:
                raise wrong.under(name) from None
        return kind(**made)

    return read
