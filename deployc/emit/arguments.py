"""One flag of the command line, from a chosen value or from the user's `engine.args`."""

from __future__ import annotations

import json
from typing import Any

from deployc.emit.paths import Placeholders, is_path
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag
from deployc.types.facts import EngineFacts


def flag(name: str, value: object, because: str, reason: str = "") -> EngineFlag:
    """A flag with one value, or a bare switch where `value` is True."""
    if value is True:
        return EngineFlag(name, None, because, reason, (f"--{name}",))
    return EngineFlag(name, str(value), because, reason, (f"--{name}", str(value)))


def switched_off(name: str, because: str, reason: str = "") -> EngineFlag:
    """A boolean flag in its `--no-` form."""
    return EngineFlag(name, "false", because, reason, (f"--no-{name}",))


REPEATED = ("middleware",)
"""Flags that stand once for each of their values (argparse's action "append" in vllm/entrypoints, 0.8.0 to 0.33.0):
what followed the first value would be no argument that the parser knows."""


def several(name: str, values: tuple[str, ...], because: str, reason: str = "") -> EngineFlag:
    """A flag that takes several values, after its name or after its name each."""
    each = (word for value in values for word in (f"--{name}", value))
    argv = tuple(each) if name in REPEATED else (f"--{name}", *values)
    return EngineFlag(name, " ".join(values), because, reason, argv)


def origin(deploy: Deploy, dotted: str) -> str:
    """The `because` of a key: "deploy.yaml:31" where the file has it, else "default"."""
    return deploy.because(dotted) if deploy.written(dotted) else "default"


def line_of(deploy: Deploy, *path: str) -> str:
    """The `because` of a key that the file has, whatever characters (dots too) are in its name."""
    at = deploy.at(path)
    return f"{at.file}:{at.line}" if at else "default"


def as_json(value: object) -> str:
    """A JSON value as one argument; keys in the order written."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def user_flags(deploy: Deploy, engine: EngineFacts, places: Placeholders) -> dict[str, EngineFlag | None]:
    """`engine.args` by canonical name, in the order written; None = the user wants the flag left out."""
    flags: dict[str, EngineFlag | None] = {}
    for written, setting in deploy.engine.args.items():
        name, value = _inverted(written, setting, engine) or (engine.canonical(written), setting)
        flags[name] = _user_flag(name, value, line_of(deploy, "engine", "args", written), engine, places)
    return flags


def _inverted(written: str, value: Any, engine: EngineFacts) -> tuple[str, bool] | None:
    """`no-x: true` is `x: false`."""
    name, off = engine.positive(written)
    return (name, not value) if off and isinstance(value, bool) else None


def _user_flag(name: str, value: Any, because: str, engine: EngineFacts, places: Placeholders) -> EngineFlag | None:
    reason = "engine.args"
    if value is None:
        return None
    if value is True:
        return flag(name, True, because, reason)
    known = engine.flags.get(name)
    if value is False and known is not None and "false" in known.choices:  # a boolean of 0.8 that takes a word
        return flag(name, "false", because, reason)
    if value is False:
        return switched_off(name, because, reason) if _has_no_form(name, engine) else None
    if isinstance(value, dict) or (isinstance(value, list) and known is not None and known.type == "json"):
        return flag(name, as_json(value), because, reason)
    if value == []:  # a flag with nothing after it stops the parser
        return None
    if isinstance(value, list):
        return several(name, tuple(_argument(item, places) for item in value), because, reason)
    return flag(name, _argument(value, places), because, reason)


def _argument(value: Any, places: Placeholders) -> str:
    if isinstance(value, str):
        return places.file(value) if is_path(value) else value
    return as_json(value)


def _has_no_form(name: str, engine: EngineFacts) -> bool:
    known = engine.flags.get(name)
    return f"no-{name}" in engine.flags or (known is not None and f"no-{name}" in known.aliases)
