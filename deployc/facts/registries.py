"""Reads the catalogue's registries of models and parsers as they stand for one version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.facts.catalogue.history import History, at, elsewhen, release
from deployc.facts.catalogue.registries import LISTS, PARSERS
from deployc.facts.engine_table import engine_table
from deployc.types.registries import Registries

_CLASSES = "architectures."


def registries(version: str) -> Registries:
    """As of `version`; an unreadable file is a broken installation."""
    history: History = engine_table("vllm/registries.json")
    now = at(history, version)
    others = elsewhen(history, now, version)
    classes = {name: bool(what.get("lora")) for name, what in _of(now, _CLASSES).items()}
    return Registries(
        classes=classes,
        other_classes=_of(others, _CLASSES),
        adapted_since={name: _adapted(history[_CLASSES + name], version) for name, has in classes.items() if not has},
        by_transformers=tuple(
            name
            for name, since in engine_table("architectures.json")["by_transformers"].items()
            if name not in classes and release(since) <= release(version)
        ),
        parsers={flag: tuple(_of(now, f"{flag}.")) for flag in PARSERS},
        values={flag: tuple(_of(now, f"{flag}.")) for flag in LISTS},
        other_parsers={name: when for name, when in others.items() if not name.startswith(_CLASSES)},
    )


def _of(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}


def _adapted(entries: Any, version: str) -> str:
    """The first version after this one whose class serves adapters; "" = none that is known."""
    later = [since for since, what, *_ in entries if what and what.get("lora") and release(since) > release(version)]
    return later[0] if later else ""
