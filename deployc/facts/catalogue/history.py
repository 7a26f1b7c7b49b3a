"""What changed from version to version, in one table: an entry a change, so that a new version is a diff of changes.

Read of versions {version: {name: value}} becomes {name: [[since, value], …]}, oldest first; a value of null says that
from that version on there is none of that name. An entry may have a third part, the place in the sources of `since`
that the value was read at: places move with every version, values do not, so a place alone is no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

History = Mapping[str, Sequence[Sequence[Any]]]
"""Name -> [since, value] or [since, value, place], by rising version."""

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)")


@cache
def release(version: str) -> tuple[int, ...]:
    """ "v0.19.0rc1" as (0, 19, 0): what comes after the numbers is no part of it; empty where there are none."""
    numbers = _NUMBERS.match(version)
    return tuple(int(number) for number in numbers[1].split(".")) if numbers else ()


def order(version: str) -> tuple[tuple[int, ...], str]:
    """What versions are sorted by: "0.8.5" before "0.8.5.post1"."""
    return release(version), version


def within(version: str, since: str, until: str) -> bool:
    """`since` <= version < `until`, where they are given."""
    asked = release(version)
    return (not since or release(since) <= asked) and (not until or asked < release(until))


def valid(entries: Sequence[Mapping[str, Any]], version: str) -> Any:
    """The value of the last {since, value} that is not newer than the version; of an older one, the first's."""
    return next((e["value"] for e in reversed(entries) if within(version, e["since"], "")), entries[0]["value"])


def elsewhen(history: History, now: Mapping[str, Any], version: str) -> dict[str, str]:
    """Of each name that other versions have and this one, which has `now`, does not: "came in vLLM 0.8.4", or else
    "went in vLLM 0.24.0"."""
    return {name: _when(entries, version) for name, entries in history.items() if name not in now}


def _when(entries: Sequence[Sequence[Any]], version: str) -> str:
    later = [since for since, value, *_ in entries if value is not None and not within(version, since, "")]
    went = [since for since, value, *_ in entries if value is None and within(version, since, "")]
    return f"came in vLLM {later[0]}" if later else f"went in vLLM {went[-1]}"


def fold(
    read: Mapping[str, Mapping[str, Any]], places: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, list[list[Any]]]:
    """All versions as one history, names sorted; `places` by version and name as `read`."""
    history: dict[str, list[list[Any]]] = {name: [] for name in sorted({n for values in read.values() for n in values})}
    for version in sorted(read, key=order):
        own = (places or {}).get(version, {})
        for name, entries in history.items():
            value = read[version].get(name)
            if value != (entries[-1][1] if entries else None):
                entries.append([version, value, own[name]] if name in own else [version, value])
    return history


def put(
    history: History,
    known: Sequence[str],
    version: str,
    values: Mapping[str, Any],
    places: Mapping[str, str] | None = None,
) -> dict[str, list[list[Any]]]:
    """The history of the `known` versions with one more, or with one of them read anew; the others stay as they are."""
    read = {one: at(history, one) for one in known} | {version: values}
    where = {one: _places(history, one) for one in known} | {version: places or {}}
    return fold(read, where)


def at(history: History, version: str) -> dict[str, Any]:
    """What a version has, in the order of the history."""
    return {name: entry[1] for name, entry in _entries(history, version).items() if entry[1] is not None}


def _entries(history: History, version: str) -> dict[str, Sequence[Any]]:
    asked, found = order(version), {}
    begun: dict[str, bool] = {}  # versions recur in many entries: each is compared once
    for name, entries in history.items():
        for entry in reversed(entries):
            since = entry[0]
            if since not in begun:
                begun[since] = order(since) <= asked
            if begun[since]:
                found[name] = entry
                break
    return found


def _places(history: History, version: str) -> dict[str, str]:
    """By name; a place in the sources of an earlier version says so: it may come to stand at the head of an entry."""
    made = {}
    for name, (since, _, *place) in _entries(history, version).items():
        if place:
            told = since == version or " of " in place[0]
            made[name] = place[0] if told else f"{place[0]} of {since}"
    return made


def text(history: History) -> str:
    """As a file: one name a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entries)}" for name, entries in history.items())
    return f"{{\n{lines}\n}}\n"
