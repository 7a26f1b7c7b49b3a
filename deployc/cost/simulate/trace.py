"""What a simulated run did: when each request was sent, first answered and done, and the steps in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployc.cost.step.work import Work


@dataclass(slots=True)
class Trace:
    """Seconds from the start, one entry a request. Stages are runs of equal steps, or a wait for arrivals."""

    sent: list[float]
    first: list[float]
    done: list[float]
    steps: int = 0
    running: float = 0.0  # sum over steps of decoding sequences x seconds
    busy: float = 0.0  # seconds in steps
    preempted: int = 0
    short_of_memory: float = 0.0  # seconds in which requests waited for KV blocks
    short_of_slots: float = 0.0  # seconds in which they waited for max_num_seqs
    record: Record | None = None


@dataclass(slots=True)
class Record:
    """The run as stages, for a fit to time again: request i was sent after `sent[i]` stages, and so on.

    A stage is (count of steps, their mean work), or (0, None) where the engine waits; `ends` in seconds.
    """

    stages: list[tuple[int, Work | None]] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)  # -1: not after a stage, but at a time of its own
    first: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    def add(self, count: int, work: Work | None, end: float) -> None:
        """One more stage."""
        self.stages.append((count, work))
        self.ends.append(end)
