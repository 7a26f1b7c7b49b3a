"""What is said of a log: DC762-DC769, or the code of the rule that says the same before a start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deployc.diagnostics import Diagnostic, Span, error, note, warning
from deployc.measure.doctor.log import remedy
from deployc.measure.doctor.log.against import Compared, Unlike, compared, unlike
from deployc.measure.doctor.log.reading import Reading
from deployc.measure.doctor.log.shown import NAMES, band, shown
from deployc.rules.case import Case
from deployc.types.lore import Gone
from deployc.units import show_count
from deployc.views.pages import Page

_PYDANTIC = re.compile(r"^Value error, | \[type=\w{1,40}, .*")
"""What pydantic puts around the engine's own words."""
LONGEST = 400
"""Characters of the engine's own words that are told; the log has the rest."""
IMPORTED = {"llama.cpp": "llama-server", "TGI": "text-generation-launcher"}
"""Servers whose command line `deployc import` reads."""


@dataclass(frozen=True, slots=True)
class Told:
    """A reading, what a plan predicts of the same engine, and what is said of both."""

    reading: Reading
    figures: tuple[Compared, ...]
    settings: tuple[Unlike, ...]
    diagnostics: tuple[Diagnostic, ...]
    planned: bool = False  # whether there was a plan to set it beside


def judge(
    reading: Reading,
    pages: Mapping[str, Page],
    gone: Mapping[str, Gone],
    case: Case | None = None,
    planned: frozenset[str] = frozenset(),
) -> Told:
    """`pages` by code, flags that are `gone` from some version on; with a file its `case` and the codes `planned`."""
    facts = {fact.name: fact for fact in reading.facts}
    figures = tuple(compared(facts, case)) if case else ()
    settings = tuple(unlike(facts, case)) if case else ()
    found: list[Diagnostic] = []
    if reading.outcome in ("other", "empty"):
        found.append(_stranger(reading))
    elif reading.failures:
        found.append(_failed(reading, pages, gone, planned if case else None))
    elif reading.outcome in ("failed", "died"):
        found.append(_unknown(reading))
    elif reading.outcome == "serving":
        found.append(_well(reading))
    else:
        found.append(_unfinished(reading))
    found += [
        *_parts(reading),
        *_exposed(reading),
        *_versions(reading, settings),
        *_figures(reading, figures, settings),
    ]
    return Told(reading, figures, settings, tuple(found), case is not None)


def _failed(
    reading: Reading, pages: Mapping[str, Page], gone: Mapping[str, Gone], planned: frozenset[str] | None
) -> Diagnostic:
    found = reading.failures[0]
    code, more, fix = found.failure.code, "", found.failure.fix
    text = _PYDANTIC.sub("", found.text)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    if found.failure.name == "unknown-flag":
        code, more, instead = remedy.flags(text, gone)
        fix = instead or fix
    page, facts = pages[code], {fact.name: fact.value for fact in reading.facts}
    fix = "; ".join(part for part in (remedy.by_figures(code, facts, text), fix or remedy.first(page.fix)) if part)
    said = ""
    if planned is not None:
        also = "says the same of this file" if code in planned else "does not say this of the file as it is"
        said = f" `deployc plan` {also}."
    when = " It served before that." if reading.outcome in ("died", "serving") else ""
    known = f"`deployc explain {code}` tells more"
    return error(
        code, page.summary, f"{_stop(text)}{more}{when}{said}", f"{fix or remedy.first(page.fix)}; {known}", found.at
    )


def _unknown(reading: Reading) -> Diagnostic:
    last = reading.last[-1] if reading.last else None
    lines = " / ".join(span.excerpt[span.column - 1 :].strip()[:200] for span in reading.last[-3:])
    what = "served and ended by a fault" if reading.outcome == "died" else "did not start"
    return error(
        "DC762",
        "the engine failed for a reason that is not recognised",
        f"It {what}. The last lines that name an error: {lines or 'none'}.",
        "look for the first traceback of the log, not for the last: what follows it says only that something failed",
        last,
    )


def _well(reading: Reading) -> Diagnostic:
    end = f" It was told to end in line {reading.stopped.line}." if reading.stopped else ""
    return note(
        "DC763",
        "nothing went wrong at the start",
        f"The server came up.{end}",
        "where it is slow, describe what you see: `deployc doctor --describe FILE`",
    )


def _stranger(reading: Reading) -> Diagnostic:
    if reading.outcome == "empty":
        what = "It holds no line of text."
    elif reading.server:
        what = f"It is one of {reading.server}."
    else:
        what = "None of its lines is one that vLLM prints."
    other = IMPORTED.get(reading.server)
    fix = "give what the engine printed: `docker logs NAME > engine.log 2>&1`, `journalctl -u UNIT > engine.log`"
    return error(
        "DC764",
        "this is no log of vLLM",
        what,
        f"`deployc import` reads the command line of {other}; {fix}" if other else fix,
        reading.last[0] if reading.last else Span(reading.window.name, 1, 1, 2),
    )


def _unfinished(reading: Reading) -> Diagnostic:
    last = reading.last[-1] if reading.last else None
    if reading.stopped is not None:
        return warning(
            "DC767",
            "the log ends before the start does",
            "It was told to end before it served: by a person, or by a health check, a probe or a unit's time limit "
            "that is shorter than the start takes.",
            "rollout.health_timeout above the predicted start time (`deployc explain DC606`)",
            reading.stopped,
        )
    stuck = last is not None and re.search(
        r"nccl|rank \d+ in world size|custom_all_reduce", last.excerpt, re.IGNORECASE
    )
    more = " It stands where the ranks meet: cards without NVLink may wait there for ever (DC593)." if stuck else ""
    return warning(
        "DC767",
        "the log ends before the start does",
        f"It holds no fault and no `Application startup complete`: it still loads, or was killed from outside.{more}",
        "NCCL_P2P_DISABLE=1 in engine.env (`deployc explain DC593`)"
        if stuck
        else "give the log again when it has ended; `dmesg` and `docker inspect` (OOMKilled) say who killed it",
        last,
    )


def _parts(reading: Reading) -> Iterator[Diagnostic]:
    if not reading.whole:
        yield note(
            "DC768",
            "only the beginning and the end of the log were read",
            f"It has {show_count(reading.window.size)} bytes. The first MiB and the last 16 MiB are read, and of many "
            "lines the last 100,000.",
            "cut out the start that failed, where it lies between them",
        )


def _exposed(reading: Reading) -> Iterator[Diagnostic]:
    if reading.exposed:
        lines = ", ".join(str(span.line) for span in reading.exposed[:5])
        yield warning(
            "DC769",
            "a secret stands in the log",
            f"Lines that spell out a key or a token: {lines}. It is masked here, not in the log.",
            "take a new key, and give it with target.api_key, not on the command line; vLLM masks it from 0.29 on",
            reading.exposed[0],
        )


def _versions(reading: Reading, settings: tuple[Unlike, ...]) -> Iterator[Diagnostic]:
    for one in settings:
        if one.name == "engine.version":
            yield warning(
                "DC765",
                "the log is of another version than the file",
                f"The engine says {one.read.value}, engine.version is {one.written}.",
                f"engine.version: {one.read.value}, or start the version that the file names",
                Span(reading.window.name, one.read.line, 1, 2),
            )


def _figures(reading: Reading, figures: tuple[Compared, ...], settings: tuple[Unlike, ...]) -> Iterator[Diagnostic]:
    outside = [one for one in figures if not one.inside]
    if not outside:
        return
    told = "; ".join(f"{NAMES[one.name]} {shown(one.read)}, predicted {band(one.predicted)}" for one in outside)
    why = f" It ran with other settings: {', '.join(one.name for one in settings)}." if settings else ""
    yield warning(
        "DC766",
        "the engine's figures are not those predicted",
        f"{told}.{why}",
        "compare the settings of the log with the file's, and what else uses the card with hardware.reserved_memory",
        Span(reading.window.name, outside[0].read.line, 1, 2),
    )


def _stop(text: str) -> str:
    text = text.rstrip("; ")
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
