"""What each version's own parser has, as recorded in data/vllm_parsers.json, in the catalogue's words."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

from deployc.facts.catalogue.history import at, release

RECORDED = json.loads((Path(__file__).parent / "data" / "vllm_parsers.json").read_text())
VERSIONS: tuple[str, ...] = tuple(RECORDED["versions"])

_SWITCHES = ("BooleanOptionalAction", "EnableDisableAction", "_StoreTrueAction", "_StoreFalseAction", "StoreBoolean")
_KINDS = {
    None: "str", "str": "str", "int": "int", "float": "float", "loads": "json", "union_dict_and_str": "json",
    "human_readable_int": "size", "human_readable_int_or_auto": "size", "nullable_str": "str", "nullable_kvs": "str",
    "parse_reasoning_parser": "str",
    "bool": "str", "_compute_kwargs.<locals>.parse_dataclass": "json", "get_kwargs.<locals>.<lambda>": "json",
    "get_kwargs.<locals>.parse_dataclass": "json", "PoolerConfig.from_json": "json",
    "KVTransferConfig.from_cli": "json", "CompilationConfig.from_cli": "json",
    "EngineArgs.add_cli_args.<locals>.<lambda>": "str",
}  # fmt: skip
"""argparse converters -> what the catalogue calls them. `bool` as a converter takes a word, and makes no switch."""


@cache
def actions(version: str) -> dict[str, dict[str, Any]]:
    """Option name without dashes -> the action."""
    return at(RECORDED["options"], version)


def spellings(version: str) -> dict[str, str]:
    """Every spelling without dashes, `no-` twins and short ones too -> the option's name.

    0.9.0 leaves --model out where `serve` is among the words of the command; the module that its image starts has it.
    """
    made = {"model": "model"} if release(version)[:3] == (0, 9, 0) else {}
    for name, action in actions(version).items():
        made |= {option.lstrip("-"): name for option in (name, *action.get("options", ()))}
    return made


def kind(action: dict[str, Any]) -> str:
    """The catalogue's type."""
    if action["action"] in _SWITCHES:
        return "bool"
    if action.get("nargs") in ("+", "*") or action["action"] == "_AppendAction":
        return "list"
    return _KINDS[action.get("type")]


def choices(action: dict[str, Any]) -> set[str]:
    """None among them stands for "not given", and is no word of the command line."""
    if action["action"] == "StoreBoolean":
        return {"true", "false"}
    return {choice for choice in action.get("choices", ()) if choice != "None"}


def default(action: dict[str, Any]) -> str | None:
    """As the catalogue writes it; None where there is none, or where it is no plain value."""
    told = action.get("default", "None")
    if told.startswith("<") or told == "'==SUPPRESS=='":
        return None
    value = ast.literal_eval(told.replace("set()", "[]"))
    if kind(action) == "bool":
        return None if value is None else str(value).lower()
    if isinstance(value, list | dict | set | tuple):
        return json.dumps(sorted(value) if isinstance(value, set) else value)
    return None if value is None else str(value)
