"""A flag's value as text or plain value -> as deploy.yaml has it: numbers, switches, lists, maps."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from deployc.types import json_text
from deployc.types.facts import Flag
from deployc.types.launch import FoundFlag

_INT = re.compile(r"[+-]?\d+\Z")
_SMART = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "＂": '"', "：": ":", "，": ",", "｛": "{", "｝": "}"})
_DEEP = 20_000


def typed(flag: Flag | None, value: Any) -> Any:
    """The value in the flag's type; as it is where it has another, which JUDGE then says. None = none was written."""
    kind = flag.type if flag is not None else ""
    if isinstance(value, list) and kind != "json":
        return [_scalar("", item) if isinstance(item, str) else item for item in value]
    if not isinstance(value, str):
        return value
    if kind == "json":
        read = as_json(value)
        return value if read is None else read
    if kind == "list":
        return [value]
    return _scalar(kind, value)


def as_json(text: str) -> Any:
    """JSON, with the quotes of a word processor made plain, or Python's way of writing it; None where it is neither."""
    if len(text) > _DEEP:
        return None
    for spelling in (text, text.translate(_SMART)):
        try:
            return json_text.loads(spelling)
        except ValueError:
            continue
    return None


def unquoted(text: str) -> str | None:
    """The JSON inside a value that has quotes of its own around it, as `"'{…}'"` leaves it; None where it has none."""
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\"`" and stripped[1:2] in ("{", "["):
        return stripped[1:-1]
    return None


def python_literal(text: str) -> Any:
    """A map written as Python does, `{'a': 1}`: the engine refuses it, its meaning is clear. None where it is none."""
    if len(text) > _DEEP or not text.strip().startswith("{"):
        return None
    try:
        read = ast.literal_eval(text.strip())
        return json_text.loads(json.dumps(read))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def merged(flags: list[FoundFlag]) -> dict[str, Any]:
    """`--x.a.b 1 --x.c 2` as one map {"a": {"b": 1}, "c": 2} under "x", in the order written."""
    found: dict[str, Any] = {}
    for flag in flags:
        head, _, inner = flag.name.partition(".")
        node = found.setdefault(head, {})
        *path, last = inner.split(".", json_text.DEEPEST)  # what lies deeper is one name
        for part in path:
            node = node.setdefault(part, {}) if isinstance(node, dict) else {}
        if isinstance(node, dict):
            node[last.removesuffix("+")] = _inner(flag.value)
    return found


def _inner(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value in ("True", "False"):
        return value == "True"
    read = as_json(value)
    return value if read is None else read


def _scalar(kind: str, text: str) -> Any:
    if kind in ("int", "size", "float") and _INT.match(text) and len(text) < 19:
        return int(text)
    if kind == "float":
        try:
            number = float(text)
        except ValueError:
            return text
        return number if abs(number) < 1e15 else text  # also refuses nan and inf, which YAML writes as words
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text
