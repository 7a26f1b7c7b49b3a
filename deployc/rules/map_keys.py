"""Keys of flags that take a map, against the config class that this version reads them into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types import json_text


def are_known(case: Case) -> Iterator[Diagnostic]:
    """A key that the class does not have stops the engine, or in older versions is dropped without a word."""
    for written, value in case.deploy.engine.args.items():
        flag, _, key = case.facts.engine.canonical(written).partition(".")
        known = case.facts.lore.keys.get(flag, {})
        for name in [key.partition(".")[0]] if key else list(_map(value)):
            plain = name.replace("-", "_") if key else name  # on the command line dashes do as well
            if known and flag in case.facts.engine.flags and plain not in known:
                yield _unknown(case, written, f"{flag}.{plain}", known)


def _map(value: Any) -> Mapping[str, Any]:
    """A map, or the one that a text is the JSON of."""
    if isinstance(value, str):
        try:
            value = json_text.loads(value)
        except ValueError:
            return {}  # DC501, or a short form of its own
    return value if isinstance(value, dict) else {}


def _unknown(case: Case, written: str, name: str, known: Mapping[str, bool]) -> Diagnostic:
    flag, _, key = name.partition(".")
    when, stops = case.facts.lore.other_keys.get(name, ""), any(known.values())
    close = get_close_matches(key, list(known), 1, 0.75)
    say = error if stops else warning
    return say(
        "DC538",
        "the flag's map has no such key",
        f"--{flag} of vLLM {case.facts.engine.version} has no {key}{f': it {when}' if when else ''}. "
        + ("The engine stops at it." if stops else "The engine drops it without a word."),
        f"did you mean {close[0]}?" if close and not when.startswith("came") else f"remove {key}",
        case.deploy.at(("engine", "args", written)),
    )
