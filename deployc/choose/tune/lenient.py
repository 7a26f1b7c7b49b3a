"""Engines whose steps are as quick as they could be: those that differ in the sizes of batches alone share them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from deployc.cost.prediction import Setting
from deployc.cost.simulate import AHEAD, Limits, room
from deployc.cost.step import Step, Work
from deployc.types.speed import Constants

ENDLESS = 2**30
"""Tokens up to which graphs hold a step."""


@dataclass(frozen=True, slots=True)
class Lenient:
    """An engine whose every step is held by graphs. GPU and host work side by side: no run takes less than the sum of
    either's part."""

    step: Step
    limits: Limits
    constants: Constants

    @property
    def looks_back(self) -> bool:
        """Whether every layer reads all that came before: then what is read grows evenly, and a mean stands for all."""
        return all(math.isinf(most) for most, _ in (*self.step.shape.kv_reads, *self.step.shape.attention))

    def gpu(self, work: Work) -> float:
        """Seconds of a step on the GPU."""
        return self.step.time(work).gpu

    def host(self, work: Work) -> float:
        """Seconds of it on the host."""
        return self.step.time(work).host

    def seconds(self, work: Work) -> float:
        """Of each in a row of such steps."""
        return self.step.time(work).steady

    def either(self, steps: float, *works: Work) -> float:
        """Of each in any row of so many steps of these kinds; the host may have been ahead when the row began."""
        behind = max(0.0, 1 - AHEAD / steps)
        return max(min(map(self.gpu, works)), behind * min(map(self.host, works)))


@dataclass(slots=True)
class Engines:
    """One lenient engine for each family of configurations; `family` tells what else than sizes they differ in."""

    known: dict[tuple[object, ...], Lenient] = field(default_factory=dict)

    def of(self, at: Setting, family: tuple[object, ...]) -> Lenient:
        """With this configuration's own limits."""
        found = self.known.get(family)
        if found is None:
            one = at.engine(at.bill.kv_cache.value)
            shape = replace(one.step.shape, largest_full_graph=ENDLESS, largest_graph=ENDLESS)
            found = self.known[family] = Lenient(Step(shape, one.constants), one.limits, one.constants)
        limits = replace(
            found.limits,
            max_num_seqs=at.choices.max_num_seqs.value,
            max_num_batched_tokens=at.choices.max_num_batched_tokens.value,
            room=room(at.pages, at.bill.kv_cache.value, math.ceil(at.request.long_input + at.request.long_output)),
            block_size=at.pages.block_size or 1,
        )
        return replace(found, limits=limits)
