"""What all adapters make of one tensor, rows at a time. Runs in the build interpreter.

total = W + sum of weight_i · (adapter_i(W) - W). A tensor that several adapters replace is one and the same in all of
them: it stands in W's place then, once. Rows that W does not have are the adapter's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from deployc.build.merge.low import Dora, Low, Stacked
from deployc.build.weights.tensors import as_single

Rows = Callable[[int, int], torch.Tensor]
"""Rows [first, last) of a tensor in float32, in memory of their own."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The adapter's own tensor in the place of the model's."""

    read: Rows


@dataclass(frozen=True, slots=True)
class Added:
    """A vector, scaled."""

    values: torch.Tensor
    factor: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """Single rows: `values[i]` is row `index[i]`."""

    index: Sequence[int]
    values: torch.Tensor


Step = Low | Stacked | Dora | Replaced | Added | Tokens


@dataclass(frozen=True, slots=True)
class Steps:
    """What one adapter does, in order; it counts with `weight`."""

    weight: float
    steps: Sequence[Step]

    @property
    def adds(self) -> bool:
        """Whether it only adds, whatever W is."""
        return all(isinstance(step, Low | Stacked | Added) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Change:
    """`common` stands in W's place; `borrowed` gives W where the base has no tensor of that name."""

    adapters: Sequence[Steps]
    common: Replaced | None = None
    borrowed: Rows | None = None

    def rows(self, base: torch.Tensor | None, first: int, last: int) -> torch.Tensor:
        """Rows [first, last) of the total, float32; `base` is worked in."""
        if self.common is not None:
            base = self.common.read(first, last)
        elif base is None:
            if self.borrowed is None:
                raise ValueError("a tensor that neither the base nor an adapter has")
            base = self.borrowed(first, last)
        if len(base) < last - first:
            base = torch.cat([base, self._beyond(first + len(base), last)])
        lone = len(self.adapters) == 1 and self.adapters[0].weight == 1
        if lone:
            return _applied(self.adapters[0].steps, base, first)
        total = base if all(one.adds for one in self.adapters) else base.clone()
        for one in self.adapters:
            if one.adds:
                _added(one, total, first)
            else:
                value = _applied(one.steps, base.clone(), first)
                total.add_(value.sub_(base), alpha=as_single(one.weight))
        return total

    def _beyond(self, first: int, last: int) -> torch.Tensor:
        """Rows that only an adapter has."""
        return next(step.read(first, last) for one in self.adapters for step in one.steps if isinstance(step, Replaced))


def _applied(steps: Sequence[Step], values: torch.Tensor, first: int) -> torch.Tensor:
    """adapter(W), in place where it can be."""
    for step in steps:
        match step:
            case Replaced():
                values = step.read(first, first + len(values))
            case Dora():
                values = step.of(values, first)
            case Added():
                values.add_(step.values[first : first + len(values)], alpha=as_single(step.factor))
            case Tokens():
                for at, row in enumerate(step.index):
                    if first <= row < first + len(values):
                        values[row - first] = step.values[at]
            case _:
                values = step.add(values, first)
    return values


def _added(one: Steps, total: torch.Tensor, first: int) -> None:
    for step in one.steps:
        if isinstance(step, Low | Stacked):
            step.add(total, first, one.weight)
        elif isinstance(step, Added):
            factor = as_single(one.weight * step.factor)
            total.add_(step.values[first : first + len(total)], alpha=factor)
