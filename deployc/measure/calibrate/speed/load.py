"""A row's `load` -> the load that is simulated. What cannot be told from it is an `Unknown` that names the key."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from deployc.cost.simulate import Load, closed
from deployc.measure.calibrate.cells import Cells
from deployc.measure.calibrate.config import Unknown

MOST_REQUESTS = 20_000
"""Requests of a run that is simulated; measured ones have hundreds."""
LONGEST = 10**8
"""Tokens of a prompt or an answer, beyond any model's positions."""
LONG_GAP = 1e6
"""Seconds between two arrivals."""


def load(values: Mapping[str, Any], notes: list[str]) -> Load:
    """Closed or open; notes say what is not followed. Raises Unknown."""
    cells = Cells(values, notes)
    kind = cells.text("kind")
    if kind not in ("closed", "poisson"):
        raise Unknown(f"load.kind: {_said(values, 'kind')}: closed and poisson are known")
    lists = Cells(cells.object("lengths"), notes)
    inputs, outputs = (_lengths(cells, lists, key) for key in ("isl", "osl"))
    if len(inputs) != len(outputs):
        raise Unknown(f"load.lengths: {len(inputs)} of isl and {len(outputs)} of osl")
    prefix = cells.number("shared_prefix") or 0
    if not 0 <= prefix < min(inputs):
        raise Unknown(f"load.shared_prefix: {prefix:g} tokens, and the shortest prompt has {min(inputs)}")
    cap = cells.whole("in_flight_cap")
    if kind == "closed":
        asked = cells.whole("concurrency") or cap
        if asked is None:
            raise Unknown("load.concurrency: there is none")
        return closed(inputs, outputs, min(asked, cap or asked), int(prefix))
    if cap is not None and cap < len(inputs):
        notes.append(f"load.in_flight_cap: of open arrivals a limit of {cap} in flight is not followed")
    return Load(inputs, outputs, _arrivals(lists, len(inputs)), shared_prefix=int(prefix))


def _lengths(cells: Cells, lists: Cells, key: str) -> list[int]:
    """One for each request: those that were drawn, else all alike."""
    if lists.values.get(key) is not None:
        drawn = _numbers(lists, key, 1, LONGEST)
        if any(value != int(value) for value in drawn):
            raise Unknown(f"load.lengths.{key}: tokens are whole numbers")
        return [int(value) for value in drawn]
    if cells.number("spread"):
        raise Unknown(f"load.lengths.{key}: not there, and load.spread says that lengths differ")
    each, count = cells.whole(key, LONGEST), cells.whole("requests")
    if each is None or count is None:
        missing = key if each is None else "requests"
        raise Unknown(f"load.{missing}: {_said(cells.values, missing)}")
    if count > MOST_REQUESTS:
        raise Unknown(f"load.requests: {count:,}, and at most {MOST_REQUESTS:,} are simulated")
    return [each] * count


def _arrivals(lists: Cells, count: int) -> tuple[float, ...]:
    """Seconds from the start of the run: the first request, too, comes after its gap."""
    if lists.values.get("gap_s") is None:
        raise Unknown("load.lengths.gap_s: not there, so that arrivals are not known")
    gaps = _numbers(lists, "gap_s", 0, LONG_GAP)
    if len(gaps) != count:
        raise Unknown(f"load.lengths.gap_s: {len(gaps)} for {count} requests")
    return tuple(accumulate(gaps))


def _numbers(lists: Cells, key: str, least: float, most: float) -> list[float]:
    values = lists.values[key]
    if not isinstance(values, list) or not values:
        raise Unknown(f"load.lengths.{key}: {_said(lists.values, key)}: a list with one number for each request")
    if len(values) > MOST_REQUESTS:
        raise Unknown(f"load.lengths.{key}: {len(values):,}, and at most {MOST_REQUESTS:,} are simulated")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise Unknown(f"load.lengths.{key}: {value!r:.40} is not between {least:,} and {most:,.0f}")
    return [float(value) for value in values]


def _said(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return "there is none" if value is None else f"{value!r:.40}"
