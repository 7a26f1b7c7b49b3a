"""Reads what profiles/engines/ says beyond a version's own catalogue: it ships with the tool, in no lockfile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from deployc.facts.catalogue.history import History, at, elsewhen, release, within
from deployc.facts.codec import decode
from deployc.facts.drivers import drivers
from deployc.facts.engine import Span, flag_spans, versions
from deployc.facts.engine_table import engine_table
from deployc.facts.exposure import exposure
from deployc.facts.formats import formats
from deployc.facts.registries import registries
from deployc.types.lore import Foreign, Gone, Hole, Lore, Remark


@cache
def lore(version: str) -> Lore:
    """All of it, as it stands for `version`; an unreadable file is a broken installation."""
    gone, spans = decode(dict[str, Gone], engine_table("gone.json")["flags"]), flag_spans()
    variables, methods, known = engine_table("variables.json"), engine_table("methods.json"), versions()
    history: History = engine_table("vllm/variables.json")
    maps: History = engine_table("vllm/maps.json")
    now, keys = at(history, version), at(maps, version)
    return Lore(
        gone=_gone(gone, spans, version),
        going={name: one for name, one in gone.items() if not within(version, one.gone, "")},
        came={name: span.since for name, span in spans.items() if not within(version, span.since, "")},
        formats=formats(version),
        keys=_keys(keys),
        other_keys=elsewhen(maps, keys, version),
        notions=engine_table("notions.json")["flags"],
        remarks=(*_useless(gone, version), *_remarks(version)),
        elsewhen=elsewhen(history, now, version),
        instead=variables["instead"],
        foreign=decode(dict[str, Foreign], variables["foreign"]),
        choices={name: tuple(read["choices"]) for name, read in now.items() if "choices" in read},
        numbers=tuple(variables["numbers"]),
        accepts={method: tuple(values) for method, values in methods["accepts"].items()},
        meant=methods["meant"],
        backends=tuple(at(engine_table("vllm/backends.json"), version)),
        needs_checkpoint=tuple(methods["needs_checkpoint"]),
        holes=tuple(hole for hole in all_holes() if within(version, hole.came, hole.fixed)),
        drivers=drivers(),
        exposure=exposure(version),
        registries=registries(version),
        newest=known[-1],
        v1_alone=engine_table("vllm/behaviour.json")["v1_needs"][-1][0],
        behind=_behind(version, known[-1]),
    )


def _gone(told: Mapping[str, Gone], spans: Mapping[str, Span], version: str) -> dict[str, Gone]:
    """Those that this version no longer has: as told, and in every other spelling that the parsers had.

    A name may come again: disable-log-requests went in 0.17.0, and is the opposite of enable-log-requests from 0.33.0.
    """
    found = {
        name: one
        for name, one in told.items()
        if within(version, one.gone, "") and not (name in spans and _has(spans[name], version))
    }
    for spelled, span in spans.items():
        if spelled not in told and span.until and within(version, span.until, ""):
            of_parsers = Gone(span.until, f"the option parsers of the versions around {span.until}")
            found[spelled] = replace(told.get(span.flag, of_parsers), gone=span.until)
    return found


def _has(span: Span, version: str) -> bool:
    return within(version, span.since, span.until or "")


def all_remarks() -> tuple[Remark, ...]:
    """Those of every version, as the file has them."""
    return decode(tuple[Remark, ...], engine_table("remarks.json")["remarks"])


def all_holes() -> tuple[Hole, ...]:
    """Those of every version."""
    return decode(tuple[Hole, ...], engine_table("holes.json")["holes"])


def _remarks(version: str) -> Iterator[Remark]:
    return (remark for remark in all_remarks() if within(version, remark.since, remark.until))


def _useless(gone: Mapping[str, Gone], version: str) -> Iterator[Remark]:
    """A flag that still parses, long after it did anything."""
    for name, one in gone.items():
        if one.useless and within(version, one.useless, one.gone):
            says = f"It has had no effect since {one.useless}, and went in {one.gone}. {one.why}"
            yield Remark(name, "DC508", "note", says, "remove it", one.source)


def _keys(table: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """ "compilation-config.mode" by flag and key."""
    found: dict[str, dict[str, bool]] = {}
    for name, value in table.items():
        flag, _, key = name.partition(".")
        found.setdefault(flag, {})[key] = bool(value.get("refused"))
    return found


def _behind(version: str, newest: str) -> int:
    """Minor releases between the two; vLLM counts them through, 0.9 is followed by 0.10."""
    (major, minor, *_), (own_major, own_minor, *_) = release(newest), release(version)
    return max(0, minor - own_minor) if major == own_major else 0
