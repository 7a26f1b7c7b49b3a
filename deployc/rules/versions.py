"""`engine.version` and `engine.image`: how old, with which published holes, and whether it stays the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, note, warning
from deployc.rules.case import Case
from deployc.rules.exposure import LOOPBACK
from deployc.types.lore import Hole

OLD = 12
"""Minor releases behind the newest from which on it is said: vLLM brings out one or two a month."""

MOVES = re.compile(r"(latest|nightly|main|master|dev|edge|stable)([-_.].*)?\Z")
"""Tags that are given to one image after another."""


def age(case: Case) -> Iterator[Diagnostic]:
    """A version that was pinned long ago: what others measured and advise since is of other code."""
    lore = case.facts.lore
    if lore.behind >= OLD:
        yield warning(
            "DC518",
            "the engine's version is old",
            f"vLLM {case.facts.engine.version} is {lore.behind} minor releases behind {lore.newest}, the newest that "
            "this deployc knows; faults and holes are mended in newer ones alone.",
            f"set engine.version: {lore.newest}, then compare `deployc plan`",
            case.deploy.at("engine.version"),
        )


def holes(case: Case) -> Iterator[Diagnostic]:
    """Published holes of this version. Those by which callers stop it count where others than this host can call."""
    reached = not case.deploy.target.bind.startswith(LOOPBACK)
    found = [hole for hole in case.facts.lore.holes if hole.severity == "warning" or reached]
    if not found:
        return
    say = warning if any(hole.severity == "warning" for hole in found) else note
    yield say(
        "DC519",
        "the engine's version has known security holes",
        f"Of vLLM {case.facts.engine.version} these are published: {'; '.join(map(_named, found))}.",
        f"set engine.version: {case.facts.lore.newest}, or the first version named here that mends what concerns you",
        case.deploy.at("engine.version"),
    )


def _named(hole: Hole) -> str:
    return f"{hole.name}, {hole.what} (mended in {hole.fixed})"


def image_stays(case: Case) -> Iterator[Diagnostic]:
    """A tag that moves brings another CUDA, another engine, another way to start, without a change here."""
    image = case.deploy.engine.image
    if image is None or "@" in image:
        return
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag and not MOVES.match(tag):
        return
    yield warning(
        "DC522",
        "the image's tag moves",
        f"`{image}` {'is given to one image after another' if tag else 'names no tag, so `latest` is meant'}: what "
        f"runs may be another engine than {case.facts.engine.version}, with another CUDA and another way to start.",
        f"set engine.image: {image.rpartition(':')[0] if tag else image}:v{case.facts.engine.version}, or a digest "
        "(@sha256:…)",
        case.deploy.at("engine.image"),
    )
