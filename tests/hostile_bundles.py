"""Bundles with a hostile text in them: which places take which, and one with a text at all the places that take it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import handmade
import hostile
from hostile import BASE, KEY, TEXTS, put, shaped

from deployc.diagnostics import Report
from deployc.emit import compile_bundle
from deployc.emit.flags import is_template
from deployc.source.document import Document
from deployc.spec.deploy import Deploy, Path
from deployc.types.bundle import Bundle
from deployc.types.choices import Choice
from deployc.types.facts import Facts

FIELDS = hostile.fields()
UNREADABLE = {name for name, text in TEXTS.items() if "\0" in text or any(0xD800 <= ord(c) < 0xE000 for c in text)}
READ = {name: text for name, text in TEXTS.items() if name not in UNREADABLE}
"""Those that READ hands on."""


def facts_of(deploy: Deploy) -> Facts:
    """Qwen2.5-7B as this file names it; its adapters too."""
    folder = deploy.model.source.startswith((".", "/"))
    facts = handmade.facts(hub="folder" if folder else "huggingface", source=deploy.model.source)
    adapters = tuple(replace(facts.adapters[0], name=a.name, source=a.source) for a in deploy.adapters)
    return replace(facts, adapters=adapters)


def compiled(values: dict[str, Any]) -> tuple[Bundle | None, Report, Document]:
    """The bundle of these values, adapters served; None where they are refused."""
    deploy, report, document = shaped(values)
    if deploy is None:
        return None, report, document
    served = handmade.choices(adapter_mode=Choice("serve", "default", "served"))
    bundle, report = compile_bundle(deploy, facts_of(deploy), served, handmade.prediction())
    return bundle, report, document


def with_text(place: Path, text: str) -> dict[str, Any]:
    values = deepcopy(BASE)
    put(values, place, text)
    return values


def refused_at_its_place(place: Path, text: str, report: Report, document: Document) -> bool:
    """Whether an error stands at the value, its key, or the map or list around it."""
    path = tuple(text if part == KEY else part for part in place)
    around = [path[:end] for end in range(1, len(path) + 1)]
    spans = [document.spans.get(one) for one in around] + [document.keys.get(one) for one in around]
    return any(d.at in spans and d.detail and d.fix for d in report.errors)


@cache
def taken() -> dict[str, list[Path]]:
    """Text -> the places that take it. Each of all places with each of all texts goes through SHAPE and COMPILE."""
    found: dict[str, list[Path]] = {name: [] for name in READ}
    for place in FIELDS:
        for name, text in READ.items():
            bundle, report, document = compiled(with_text(place, text))
            if bundle is not None:
                found[name].append(place)
            else:
                assert refused_at_its_place(place, text, report, document), (place, name, report.errors)
    return found


@dataclass(frozen=True)
class Shipped:
    """A bundle with one text at many places, and the same one with something harmless there."""

    name: str
    bundle: Bundle
    plain: Bundle


@cache
def shipped() -> tuple[Shipped, ...]:
    return tuple(_shipped(name, places) for name, places in taken().items())


def harmless(text: str) -> str:
    """Something of the same kind: a template, a path, an absolute one, a name."""
    start = next((start for start in ("../", "./", "/", ".") if text.startswith(start)), "")
    return start + ("{{ plain }}" if is_template(text) else "plain")


def _shipped(name: str, places: Sequence[Path]) -> Shipped:
    apart: list[Path] = []
    for index, place in enumerate(places):
        named = tuple(f"name{index}" if part == "NAME" else part for part in place)
        if not any(_meet(named, other) for other in apart):
            apart.append(named)
    while True:
        bundles = [compiled(_with_texts(apart, text))[0] for text in (READ[name], harmless(READ[name]))]
        if bundles[0] is not None and bundles[1] is not None:
            return Shipped(name, bundles[0], bundles[1])
        apart.pop()  # each was taken alone; what is too much is the length of them all


def _with_texts(places: Sequence[Path], text: str) -> dict[str, Any]:
    values = deepcopy(BASE)
    for place in places:
        put(values, place, text)
    return values


def _meet(one: Path, other: Path) -> bool:
    """Whether both cannot be set: one lies within the other, or both would be the name of one map's entry."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def unit(bundle: Bundle) -> str:
    """The text of its only unit."""
    return next(text for path, text in bundle.files.items() if path.endswith(".service"))


def references(bundle: Bundle) -> Iterator[tuple[str, str, str]]:
    """("env" or "file", ":", where) of each secret."""
    for reference in bundle.launches[0].secrets.values():
        yield reference.partition(":")


def without_secret_files(command: str) -> str:
    """command.txt with `cat` of files that are not here replaced, their names still words that a shell has to read."""
    return command.replace("$(cat ", "$(printf '%s' ")
