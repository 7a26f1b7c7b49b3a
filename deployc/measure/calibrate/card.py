"""The card that a row names -> its facts: people write "H100", "A100 80GB", "2x RTX 3090 (NVLink)", or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from deployc.diagnostics import Stop
from deployc.facts import gpu_profile
from deployc.measure.calibrate.rows import Row
from deployc.types.facts import GpuFacts, Spec

GIB = 2**30
_SIZE = re.compile(r"\b(\d{1,4})\s*Gi?B\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Card:
    """A card's facts; `missing` says why its memory is not known: then the facts hold no figure to rest on."""

    facts: GpuFacts
    family: str  # "H100", "RTX 4090"; "" = not named
    notes: tuple[str, ...] = ()
    assumed: bool = False
    missing: str = ""


def card(row: Row) -> Card:
    """The profile that the name means, with the row's own memory where it gives one."""
    names = _profiles(row.gpu) if row.gpu else []
    fitting = [of for name in names if _may_be(of := gpu_profile.load(name).facts("auto"), row)]
    if not fitting:
        return _nameless(row)
    chosen = _likeliest(fitting, row)
    notes: list[str] = []
    if len(names) > 1 and row.total_gib is None:
        notes.append(f"card: {row.gpu} may be {', '.join(names)}; taken as {chosen.name}")
    if row.total_gib is not None:
        chosen = replace(chosen, memory=Spec(row.total_gib * GIB, row.id, "measured"))
    return Card(chosen, _family(chosen.name), tuple(notes), assumed=bool(notes))


def _profiles(written: str) -> list[str]:
    """By the name as it is, else without the size that people add: "L4 24GB"."""
    try:
        return gpu_profile.of_nvml(written)[:1] or gpu_profile.find(written) or gpu_profile.find(_SIZE.sub("", written))
    except Stop:
        return []


def _may_be(of: GpuFacts, row: Row) -> bool:
    """Whether a card has the size that its name in the row says, to 15 %: CUDA shows less than it is sold as."""
    said = _SIZE.search(row.gpu or "")
    return said is None or abs(of.memory.value / GIB / float(said[1]) - 0.98) < 0.15


def _likeliest(cards: Iterable[GpuFacts], row: Row) -> GpuFacts:
    """The one whose memory is nearest to the row's; else the smallest that holds what was measured, SXM first."""

    def unlike(of: GpuFacts) -> tuple[float, int]:
        order = 0 if of.name.endswith("-sxm") else 1 if "-pcie" not in of.name else 2
        size = of.memory.value / GIB
        if row.total_gib is not None:
            return round(abs(size - row.total_gib), 1), order
        used = row.measured.get("weights_gib", 0) + row.measured.get("kv_cache_gib", 0)
        return (size if used <= size * (row.gpu_memory_utilization or 1) else 1e6 - size), order

    known = list(cards)
    sxm = [of for of in known if of.name.endswith("-sxm")]
    return min(sxm if sxm and row.total_gib is None else known, key=unlike)


def _nameless(row: Row) -> Card:
    """No card by that name: the row's memory alone, if it has one. Its kind is not known, nor what follows from it."""
    why = f"gpu: {row.gpu} is no card that is known" if row.gpu else "gpu: the row names no card"
    if row.total_gib is not None:
        memory = Spec(row.total_gib * GIB, row.id, "measured")
        return Card(GpuFacts("custom", memory, None, None, {}, "unknown"), "", (why,), assumed=True)
    nothing = Spec(0, why, "user")
    return Card(GpuFacts("custom", nothing, None, None, {}, "unknown"), "", missing=why)


def _family(profile: str) -> str:
    """ "rtx-4090-48g" -> "RTX 4090", "h100-sxm" -> "H100"."""
    words = profile.split("-")
    taken = words[:1] if words[0] != "rtx" else words[: 3 if words[1] == "pro" else 2]
    return " ".join(taken).upper()
