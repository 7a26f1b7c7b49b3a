"""vLLM's V1 scheduler, step by step: who is in the batch, and when each request's tokens come.

vllm/v1/core/sched/scheduler.py and async_scheduler.py, vllm/v1/engine/core.py (step_with_batch_queue), 0.25.1; the same
in 0.32.0, whose own classes tests/engine/test_engine_5_scheduler.py compares with this step by step. Running requests
take the token budget first, then waiting ones in order of arrival; a prompt that does not fit is cut and goes on in the
next step; where blocks run out the last admitted is preempted, waits in front, and no other is admitted in that step.
With asynchronous scheduling a step is formed at the end of the one before the last, so a request that arrives during a
step waits for the rest of it and for one more, and a place is free two steps after its last token.

Not followed: speculative decoding, pipeline stages, prefill balancing over data-parallel engines, priorities,
long_prefill_token_threshold (off by default), Mamba's prompts cut at block ends under prefix caching, and blocks that a
sliding window gives back as it moves. Blocks are not taken whole: see room.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from deployc.cost.simulate.cache import Cache
from deployc.cost.simulate.limits import Delays, Limits
from deployc.cost.simulate.load import Load
from deployc.cost.simulate.sequence import Sequence
from deployc.cost.simulate.trace import Record, Trace
from deployc.cost.step.work import Work

PAUSE = 0.001
"""Seconds that the engine core sleeps where requests are on its books and none could be scheduled
(engine/core.py, _process_engine_step)."""


@dataclass(slots=True)
class Scheduler:
    """The state of one engine. `seconds` is the time of a step by its work; it grows with the context."""

    load: Load
    limits: Limits
    delays: Delays
    seconds: Callable[[Work], float]
    trace: Trace
    cache: Cache
    step: int = 0  # number of the next step
    now: float = 0.0  # end of the last step
    formed: float = 0.0  # when the next step is formed: with two in flight, the start of the last
    arriving: list[tuple[float, int]] = field(default_factory=list)  # heap of (seen at, request)
    unsent: int = 0  # the next request of a closed load
    waiting: deque[Sequence] = field(default_factory=deque)
    running: dict[int, Sequence] = field(default_factory=dict)  # in order of admission; each takes a place
    cut: Sequence | None = None  # of these, the one whose prompt goes on: always the last
    ending: list[tuple[int, int, int]] = field(default_factory=list)  # heap of (last step, admitted as, request)
    leaving: deque[tuple[int, int]] = field(default_factory=deque)  # (step in which the place is free, request)
    decodes: int = 0
    context: int = 0  # tokens of all decoding sequences
    admitted: int = 0
    blocked_by: str = ""  # "memory" | "slots" | "": why the first waiting request was not admitted

    def run(self) -> Trace:
        """Until every request is answered."""
        self._send_first()
        left = self.load.requests
        while left:
            self._see()
            preempted = self._make_room()
            work, ended = self._form(admitting=not preempted)
            if not work.rows:
                self._wait()
                continue
            count = 1 if work.prompts or preempted else self._until_change()
            self._pass(count, work)
            left -= self._answer(ended)
        return self.trace

    def _send_first(self) -> None:
        load = self.load
        if load.concurrency:
            self.unsent = min(load.concurrency, load.requests)
            for index in range(self.unsent):
                heappush(self.arriving, (index * self.delays.spacing, index))
        else:
            for index, at in enumerate(load.arrivals):
                self.trace.sent[index] = at
                heappush(self.arriving, (at + self.delays.travel, index))

    def _see(self) -> None:
        """What is known when the next step is formed: places that are free, requests that have come."""
        while self.leaving and self.leaving[0][0] <= self.step:
            self._free(self.leaving.popleft()[1])
        while self.arriving and self.arriving[0][0] <= self.formed:
            request = heappop(self.arriving)[1]
            self.waiting.append(Sequence(request, self.load.inputs[request], self.load.outputs[request]))

    def _free(self, request: int) -> None:
        sequence = self.running.pop(request, None)  # None: preempted with its last token in flight
        if sequence is not None:
            self.cache.release(sequence, self.step)

    def _make_room(self) -> bool:
        """Whether any had to be preempted for the tokens of the next step. One alone always runs, if only on paper:
        a cache that is too small for it keeps a real engine from starting."""
        before = self.trace.preempted
        while not self.cache.fits(self.decodes) and len(self.running) > 1:
            self._preempt()
        if self.cut and not self.cache.fits(self.decodes + self._part(self.cut)) and len(self.running) > 1:
            self._preempt()
        return self.trace.preempted > before

    def _preempt(self) -> None:
        """The last admitted gives up its blocks and waits in front, to be computed again."""
        _, victim = self.running.popitem()
        self.trace.preempted += 1
        self.cache.preempt(victim, self.step)
        if victim is self.cut:
            self.cut = None
        elif victim.decodes(self.step):
            grown = victim.grown(self.step)
            self.decodes -= 1
            self.context -= victim.prompt + grown
            victim.prompt, victim.left = victim.prompt + grown + 1, victim.last - self.step + 1
            victim.began = victim.last = -1
        else:
            return  # its last token is in flight
        victim.computed = victim.shared = 0
        self.waiting.appendleft(victim)

    def _part(self, sequence: Sequence, taken: int = 0) -> int:
        """Tokens of a prompt that a step has budget for, besides those decoded and those `taken`."""
        return min(sequence.prompt - sequence.computed, self.limits.max_num_batched_tokens - self.decodes - taken)

    def _form(self, *, admitting: bool) -> tuple[Work, list[Sequence]]:
        """The next step, and whose prompts end in it."""
        self.cache.grow(self.decodes)
        self.blocked_by = "" if admitting else "memory"
        ended: list[Sequence] = []
        parts, tokens, area, begun = 0, 0, 0.0, 0
        sequence, self.cut = self.cut, None
        if sequence is None and admitting:
            sequence, begun = self._admit(0), 1
        while sequence is not None:
            part = self._part(sequence, tokens)
            area += part * (sequence.computed + part / 2)
            self.cache.take(sequence, part)
            parts, tokens = parts + 1, tokens + part
            if sequence.computed < sequence.prompt:
                self.cut = sequence
                break
            ended.append(sequence)
            sequence = self._admit(tokens)
            begun += 1
        ...
