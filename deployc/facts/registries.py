"""Reads the catalogue's registries of models and parsers as they stand for one version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deployc.data import profiles
from deployc.facts.catalogue.history import History, at, release
from deployc.facts.catalogue.registries import LISTS, PARSERS
from deployc.types.registries import Registries

_CLASSES = "architectures."


def registries(version: str) -> Registries:
    """As of `version`; an unreadable file is a broken installation."""
    history: History = _read("vllm/registries.json")
    now = at(history, version)
    elsewhen = {name: _when(history[name], version) for name in history if name not in now}
    classes = {name: bool(what.get("lora")) for name, what in _of(now, _CLASSES).items()}
    return Registries(
        classes=classes,
        other_classes=_of(elsewhen, _CLASSES),
        adapted_since={name: _adapted(history[_CLASSES + name], version) for name, has in classes.items() if not has},
        by_transformers=tuple(
            name
            for name, since in _read("architectures.json")["by_transformers"].items()
            if name not in classes and release(since) <= release(version)
        ),
        parsers={flag: tuple(_of(now, f"{flag}.")) for flag in PARSERS},
        values={flag: tuple(_of(now, f"{flag}.")) for flag in LISTS},
        other_parsers={name: when for name, when in elsewhen.items() if not name.startswith(_CLASSES)},
    )


def _of(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}


def _when(entries: Any, version: str) -> str:
    """When a name that this version lacks came, or else when it went."""
    asked = release(version)
    later = [since for since, value, *_ in entries if value is not None and release(since) > asked]
    went = [since for since, value, *_ in entries if value is None and release(since) <= asked]
    return f"came in vLLM {later[0]}" if later else f"went in vLLM {went[-1]}"


def _adapted(entries: Any, version: str) -> str:
    """The first version after this one whose class serves adapters; "" = none that is known."""
    later = [since for since, what, *_ in entries if what and what.get("lora") and release(since) > release(version)]
    return later[0] if later else ""


def _read(file: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((profiles() / "engines" / file).read_bytes())
    return read
