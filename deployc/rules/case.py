"""What a rule is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deployc.cost.non_torch import before_check
from deployc.cost.start_check import held_by_others
from deployc.diagnostics import Diagnostic, Span
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts, GpuFacts
from deployc.types.figure import Factor
from deployc.types.prediction import Prediction


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration under judgement."""

    deploy: Deploy
    facts: Facts
    choices: Choices
    prediction: Prediction

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU engine serves."""
        return self.facts.smallest.name == "cpu"

    def at(self, flag: str, key: str) -> Span | None:
        """Where a value stands that may be set as a flag of `engine.args` or by a key of its own."""
        for written in self.deploy.engine.args:
            if self.facts.engine.canonical(written).removeprefix("no-") == flag:
                return self.deploy.at(("engine", "args", written))
        return self.deploy.at(key)

    def held(self, card: GpuFacts) -> int:
        """Bytes of a card that are not to be had: reserved by the file, or seen in use, whichever is more."""
        return held_by_others(self.deploy, card)

    @property
    def context(self) -> Factor:
        """Bytes that the engine holds of a card before it asks what is free."""
        return before_check(self.facts, self.choices.tensor_parallel_size.value)

    @property
    def card(self) -> str:
        """The name of the card with least memory."""
        return self.facts.smallest.name


Rule = Callable[[Case], Iterable[Diagnostic]]
