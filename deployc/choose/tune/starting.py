"""Which configurations surely start, and what each cannot be better than: each distinct engine is looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deployc.choose.tune.bound import Bounds, bounds, optimistic
from deployc.choose.tune.space import Candidate
from deployc.choose.tune.totals import Runs
from deployc.choose.tune.verdict import Lines, all_kept, judged, without_limits
from deployc.cost.kv_cache import layout
from deployc.cost.memory import kv
from deployc.cost.prediction import Setting, setting
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction


@dataclass(frozen=True, slots=True)
class Bounded:
    """A configuration that starts, and what it cannot be better than."""

    candidate: Candidate
    bounds: Bounds
    lines: Lines  # the limits beside the bounds

    @property
    def number(self) -> int:
        """Of the candidate."""
        return self.candidate.number


def bounded(every: Iterable[Candidate], like: Prediction, *, sure: bool) -> tuple[list[Bounded], int]:
    """Those that surely start, and how many do not.

    A shorter max_model_len that changes nothing else is no configuration of its own. `like`: any prediction of this
    load; `sure`: how limits are kept (see `verdict.kept`).
    """
    found, runs, seen, settings, not_starting = [], Runs(), set[tuple[object, ...]](), _Settings(), 0
    for candidate in every:
        follows = _follows_length(candidate.facts)
        same = candidate.engine
        if not follows and same in seen:
            continue
        at = settings.of(candidate, follows)
        if at.bill.kv_cache.low < max(1, at.pages.needed(candidate.choices.max_model_len.value)):
            not_starting += 1
            continue
        same = (*same, at.bill.kv_cache.value) if follows else same
        if same in seen:
            continue
        known = bounds(at, runs.of(at))
        lines = judged(candidate.deploy, like, optimistic(at, known), at.cache.concurrency)
        found.append(Bounded(candidate, known, lines))
        if all_kept([line for line in lines if line.name == "full_length_requests"], sure=sure):
            seen.add(same)
    return found, not_starting


class _Settings:
    """The last configuration's bill of memory, which the next of another max_model_len shares."""

    def __init__(self) -> None:
        self.last: tuple[tuple[object, ...], Setting] | None = None

    def of(self, candidate: Candidate, follows: bool) -> Setting:
        facts, choices, key = candidate.facts, candidate.choices, candidate.engine
        if follows or self.last is None or self.last[0] != key:
            self.last = key, setting(without_limits(candidate.deploy), facts, choices)
            return self.last[1]
        at = self.last[1]
        cache = kv(facts, choices, at.bill.kv_cache)
        return replace(at, choices=choices, pages=layout(facts, choices), cache=cache)


def _follows_length(facts: Facts) -> bool:
    """Whether anything but the length itself follows from max_model_len: the workspace of latent attention, the pages
    of layers that keep states."""
    return any(cache.kind in ("mla", "state") for cache in facts.model.architecture.caches)
