"""`--assume KEY=VALUE`: config.json read as if KEY had VALUE, and said so wherever the facts are used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from deployc.diagnostics import Diagnostic, ExitCode, Span, Stop, error, warning
from deployc.facts.faults import Fault
from deployc.types import json_text
from deployc.types.architecture import Architecture
from deployc.types.config import ABSENT, Config, put


def parsed(written: Iterable[str]) -> dict[str, Any]:
    """Dotted key of config.json -> value: JSON where it is JSON, else text. Raises Stop DC226."""
    found: dict[str, Any] = {}
    for one in written:
        key, equals, value = (part.strip() for part in one.partition("="))
        if not equals or not value or not all(key.split(".")):
            raise _unreadable(f"{one!r:.80} is not KEY=VALUE.")
        if key in found:
            raise _unreadable(f"{key} is assumed twice.")
        try:
            found[key] = json_text.loads(value)
        except ValueError:
            found[key] = value
    return found


def applied(config: Config, assume: Mapping[str, Any]) -> tuple[Config, dict[str, str]]:
    """config.json with the assumptions in place, and each of them in words. Raises Fault DC227."""
    words: dict[str, str] = {}
    for key, value in assume.items():
        try:
            before, config = put(config, key.split("."), value)
        except LookupError:
            raise _unused(f"{key}: config.json has no object of that name.") from None
        said = "has none" if before is ABSENT else f"says {_json(before)}"
        words[key] = f"{key} is {_json(value)} (config.json {said})"
    return config, words


def check_used(config: Config, assume: Mapping[str, Any], read: Callable[[Config, Mapping[str, str]], object]) -> None:
    """Each assumption makes a difference to what `read` makes of the config. Raises Fault DC227.

    `read` is given a config and the words; it may raise Fault: then what was left out is needed.
    """
    whole = _without_words(read(*applied(config, assume)))
    for key in assume:
        others = {other: value for other, value in assume.items() if other != key}
        try:
            less = _without_words(read(*applied(config, others)))
        except Fault:
            continue
        if less == whole:
            raise _unused(f"{key}: with or without it the model is read alike.")


def said(architecture: Architecture, at: Span | None) -> list[Diagnostic]:
    """The warning that every plan of such a model carries; none where all is known."""
    if not architecture.assumed:
        return []
    detail = f"assumed, not known: {'; '.join(architecture.assumed)}."
    fix = "Memory and speed rest on it: compare the engine's own log of its first start with this plan."
    return [warning("DC228", "the model is read by an assumption", detail, fix, at)]


def _without_words(made: object) -> object:
    if isinstance(made, Architecture):
        return replace(made, assumed=())
    return tuple(map(_without_words, made)) if isinstance(made, tuple) else made


def _json(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _unreadable(detail: str) -> Stop:
    fix = "Write a key of config.json and its value: --assume head_dim=128, --assume text_config.model_type=llama"
    return Stop(error("DC226", "an assumption cannot be read", f"--assume: {detail}", fix), ExitCode.USAGE)


def _unused(detail: str) -> Fault:
    fix = "Leave it out, or name the key that the diagnostic without it names."
    return Fault(error("DC227", "an assumption changes nothing", f"--assume {detail}", fix))
