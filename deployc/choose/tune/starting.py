"""Which configurations surely start, and what each cannot be better than: each distinct engine is looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deployc.choose.tune.bound import Bounds, bounds, optimistic
from deployc.choose.tune.lenient import Engines
from deployc.choose.tune.space import Candidate
from deployc.choose.tune.totals import Runs
from deployc.choose.tune.verdict import Lines, all_kept, judged, without_limits
from deployc.cost.kv_cache import layout
from deployc.cost.memory import kv, memory
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
    found, runs, engines, settings = [], Runs(), Engines(), _Settings()
    seen, not_starting = set[tuple[object, ...]](), 0
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
        known = bounds(at, runs.of(at), engines.of(at, candidate.family))
        lines = judged(candidate.deploy, like, optimistic(at, known), at.cache.concurrency)
        found.append(Bounded(candidate, known, lines))
        if all_kept([line for line in lines if line.name == "full_length_requests"], sure=sure):
            seen.add(same)
    return found, not_starting


class _Settings:
    """Settings of one configuration after the other, each made from what it has in common with the one before."""

    def __init__(self) -> None:
        self.last: tuple[Candidate, Setting] | None = None

    def of(self, candidate: Candidate, follows: bool) -> Setting:
        """Bill, pages and constants. `follows`: whether the bill does from max_model_len."""
        facts, choices, deploy = candidate.facts, candidate.choices, without_limits(candidate.deploy)
        if self.last is None or self.last[0].family != candidate.family:
            at = setting(deploy, facts, choices)
        elif follows or self.last[0].engine != candidate.engine:
            before = self.last[1]
            bill, cache = memory(facts, choices, before.bill.weights)
            at = replace(before, deploy=deploy, choices=choices, pages=layout(facts, choices), bill=bill, cache=cache)
        else:
            before = self.last[1]
            cache = kv(facts, choices, before.bill.kv_cache)
            at = replace(before, deploy=deploy, choices=choices, pages=layout(facts, choices), cache=cache)
        self.last = candidate, at
        return at


def _follows_length(facts: Facts) -> bool:
    """Whether anything but the length itself follows from max_model_len: the workspace of latent attention, the pages
    of layers that keep states."""
    return any(cache.kind in ("mla", "state") for cache in facts.model.architecture.caches)
