"""One `add_argument` call as a `Flag`."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from deployc.facts.catalogue.source import Located
from deployc.facts.catalogue.values import UNKNOWN, Parsed
from deployc.types.facts import Flag, opposite


def option(names: list[str], keys: dict[str, Any], paired: bool = False) -> Flag:
    """The flag that `add_argument(*names, **keys)` makes; its name is the first long option.

    `paired` = a switch has its opposite too, `disable-x` of `enable-x`.
    """
    long = [name.removeprefix("--") for name in names if name.startswith("--")]
    kind = _kind(keys)
    aliases = [*long[1:], *(name[1:] for name in names if not name.startswith("--"))]
    if keys.get("action") == "BooleanOptionalAction":  # argparse adds the twin to each long option
        aliases += [f"no-{name}" for name in long]
        aliases += [opposite(name) for name in long if paired and opposite(name)]
    choices = ["true", "false"] if _takes_a_word(keys) else keys.get("choices")
    known = isinstance(choices, list) and UNKNOWN not in choices
    return Flag(
        name=long[0],
        type=kind,
        choices=tuple(str(c) for c in choices if c is not None) if known and choices else (),
        default=_shown(keys.get("default", keys.get("action") != "store_true" and None), kind),
        aliases=tuple(aliases),
        deprecated=_deprecated(long[0], keys),
    )


def _kind(keys: dict[str, Any]) -> str:
    action = keys.get("action")
    if _takes_a_word(keys):
        return "bool"
    if action in ("BooleanOptionalAction", "store_true", "store_false"):
        return "bool"
    if action == "append" or keys.get("nargs") in ("+", "*"):
        return "list"
    given = keys.get("type")
    if isinstance(given, Parsed):
        return "str" if given.kind == "bool" else given.kind  # a converter makes no switch: the option takes a word
    return given if isinstance(given, str) else "str"  # a function of the engine's own takes a word


def _takes_a_word(keys: dict[str, Any]) -> bool:
    """A boolean of 0.8: `--x`, `--x true` or `--x false`; told from a switch by its choices."""
    action = keys.get("action")
    return isinstance(action, Located) and isinstance(action.node, ast.ClassDef) and action.node.name == "StoreBoolean"


def _shown(value: Any, kind: str) -> str | None:
    """The default as it would be written on the command line; None where there is none or it is not known."""
    if kind == "bool":
        return {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None
    if isinstance(value, bool | int | float | str):
        return str(value)
    return json.dumps(value) if isinstance(value, list | dict) and _plain(value) else None


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _deprecated(name: str, keys: dict[str, Any]) -> str:
    """What the engine says of the option's going, first sentence only; "" where it says nothing."""
    text = keys.get("help")
    text = " ".join(text.split()) if isinstance(text, str) else ""
    said = re.search(
        rf"^\[?Deprecated|--{name}\)? is deprecated|^This (option|parameter|argument) is deprecated", text, re.I
    )
    if said or keys.get("deprecated") is True:
        return re.split(r"(?<=[.])\s", text, maxsplit=1)[0] or "deprecated"
    return ""
