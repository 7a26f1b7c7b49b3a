"""One engine as the simulation runs it: its steps, its limits, and what lies before and after them."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.kv_cache import layout
from deployc.cost.simulate import AHEAD, Delays, Limits, Load, Outcome, Trace, outcome, room, simulate
from deployc.cost.speed_basis import SpeedBasis
from deployc.cost.step import Step, shape
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.speed import Constants


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine on its card or cards. `served`: requests come through its HTTP server, not in the same process."""

    step: Step
    limits: Limits
    constants: Constants
    served: bool = True

    @property
    def delays(self) -> Delays:
        """Seconds outside the steps."""
        own = self.constants
        server, apart = (own.server, own.server_spacing) if self.served else (0.0, 0.0)
        return Delays(own.travel + server, own.spacing + apart, own.spacing_token)

    def trace(self, load: Load, *, record: bool = False) -> Trace:
        """The run step by step."""
        return simulate(load, self.limits, self.delays, self.step.time, record=record)

    def serve(self, load: Load) -> Outcome:
        """What users of this run see."""
        return outcome(load, self.trace(load), self.constants.front)


def engine(
    facts: Facts, choices: Choices, basis: SpeedBasis, available: float, longest: int, *, served: bool = True
) -> Engine:
    """`available`: bytes of KV cache on a card; `longest`: tokens of a request, prompt and answer."""
    pages = layout(facts, choices)
    limits = Limits(
        max_num_seqs=choices.max_num_seqs.value,
        max_num_batched_tokens=choices.max_num_batched_tokens.value,
        room=room(pages, available, longest),
        prefix_caching=choices.enable_prefix_caching.value,
        block_size=pages.block_size or 1,
        ahead=AHEAD if choices.async_scheduling.value else 1,
    )
    return Engine(Step(shape(facts, choices, basis.peaks), basis.constants), limits, basis.constants, served)
