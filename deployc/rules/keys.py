"""Keys of deploy.yaml that become a flag: this version must have the flag, and take the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deployc.diagnostics import Diagnostic, error
from deployc.rules.case import Case


def _set_by_keys(case: Case) -> Iterator[tuple[str, str, Any]]:
    """Key, flag and value of those that are not the same in every version."""
    deploy = case.deploy
    for key, flag, value in (
        ("api.servers", "api-server-count", None if deploy.api.servers == "auto" else deploy.api.servers),
        ("api.tool_call_parser", "tool-call-parser", deploy.api.tool_call_parser),
        ("api.reasoning_parser", "reasoning-parser", deploy.api.reasoning_parser),
        ("quantization.kv_cache", "kv-cache-dtype", case.choices.kv_cache_dtype.value),
    ):
        if value is not None and deploy.written(key):
            yield key, flag, value


def have_their_flag(case: Case) -> Iterator[Diagnostic]:
    """What the file asks for would otherwise be left out without a word."""
    engine = case.facts.engine
    for key, name, _ in _set_by_keys(case):
        if name not in engine.flags:
            came = case.facts.lore.came.get(name)
            yield error(
                "DC507",
                "the engine does not have this flag yet",
                f"{key} is --{name}, which vLLM {engine.version} does not have"
                + (f"; it came in {came}." if came else "."),
                f"set engine.version: {came} or a newer one, or remove {key}" if came else f"remove {key}",
                case.deploy.at(key),
            )


def are_taken(case: Case) -> Iterator[Diagnostic]:
    """A value that this version's parser refuses: it starts nothing."""
    for key, name, value in _set_by_keys(case):
        flag = case.facts.engine.flags.get(name)
        if flag is not None and flag.choices and str(value) not in flag.choices:
            yield error(
                "DC501",
                "the engine cannot take this value",
                f"{key} is --{name}, which vLLM {case.facts.engine.version} does not take {value!r} for.",
                f"write one of {', '.join(flag.choices)}",
                case.deploy.at(key),
            )
