"""What the user set by hand: a flag of `engine.args` that we would otherwise choose wins, with its line."""

from __future__ import annotations

import re
from typing import Any

from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice
from deployc.types.facts import Facts

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKmMgG])\Z")
_FACTOR = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""vllm/engine/arg_utils.py, human_readable_int: small letters decimal, capitals binary."""


def written_flag(deploy: Deploy, facts: Facts, name: str) -> tuple[Any, str] | None:
    """The value of `engine.args.<name>` however it is spelt, and its `because`; None where it is not set."""
    for key, value in deploy.engine.args.items():
        found, off = facts.engine.positive(key)
        if found == name:
            at = deploy.at(("engine", "args", key))
            turned = not value if off and isinstance(value, bool) else value  # `no-x: true` is `x: false`
            return turned, f"{at.file}:{at.line}" if at else "default"
    return None


def written_count(deploy: Deploy, facts: Facts, name: str) -> Choice[int] | None:
    """A count that the user set; "16k" as the engine reads it. None where it is not set or no count.

    Below 1 it is none either: JUDGE refuses it (DC501), or it leaves the choice to the engine (max_model_len -1).
    """
    found = written_flag(deploy, facts, name)
    if found is None:
        return None
    count = as_count(found[0])
    return None if count is None or count < 1 else Choice(count, found[1], "engine.args")


def as_count(value: Any) -> int | None:
    """A whole number, or the engine's short form of one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int):
        return value
    if value.strip().isdecimal():
        return int(value)
    short = _SIZE.match(value.strip())
    return int(float(short[1]) * _FACTOR[short[2]]) if short else None


def written_switch(deploy: Deploy, facts: Facts, name: str, default: bool, reason: str) -> Choice[bool]:
    """A boolean flag: the user's, else the default."""
    found = written_flag(deploy, facts, name)
    if found is not None and isinstance(found[0], bool):
        return Choice(found[0], found[1], "engine.args")
    return Choice(default, "default", reason)
