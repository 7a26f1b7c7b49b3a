"""What one engine takes at once, and the seconds that pass outside its steps."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.simulate.room import Room

AHEAD = 2
"""Steps between forming one and the last whose outcome is known: asynchronous scheduling keeps two in flight."""
STRETCH = 16
"""Of the parts that a prompt still needs, one in so many is timed together, each as long as they are on average."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one engine."""

    max_num_seqs: int
    max_num_batched_tokens: int
    room: Room
    prefix_caching: bool = True
    block_size: int = 16
    ahead: int = AHEAD  # 1: each step is formed when the one before has ended
    whole_prompts: bool = True  # admitted where all of the prompt fits, not its first part (scheduler_reserve_full_isl)


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds outside the steps."""

    travel: float  # from a request's sending to its being seen by the scheduler
    spacing: float  # between requests sent at once
    spacing_token: float = 0.0  # the same for each token of a prompt

    def between(self, tokens: int) -> float:
        """Seconds that a request takes of the front end, during which others wait."""
        return self.spacing + self.spacing_token * tokens
