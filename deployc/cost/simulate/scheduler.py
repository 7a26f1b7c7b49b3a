"""vLLM's V1 scheduler, step by step: who is in the batch, and when each request's tokens come.

vllm/v1/core/sched/scheduler.py and async_scheduler.py, vllm/v1/engine/core.py (step_with_batch_queue), 0.25.1; the same
in 0.32.0, with whose own classes tests/engine/test_engine_5_scheduler.py compares it batch by batch. Running requests
take the token budget first, then waiting ones in order of arrival; a prompt that does not fit is cut and goes on in the
next step; where blocks run out the last admitted is preempted, waits in front, and no other is admitted in that step.
With asynchronous scheduling a step is formed at the end of the one before the last, so a request that arrives during a
step waits for the rest of it and for one more, and a place is free two steps after its last token.

Not followed: speculative decoding, pipeline stages, prefill balancing over data-parallel engines, priorities,
max_num_active_seqs (0.32.0), watermark and long_prefill_token_threshold (off by default), Mamba's prompts cut at ends
of blocks under prefix caching, and blocks that a sliding window gives back. Blocks are not taken whole: see room.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from deployc.cost.simulate.cache import Cache
from deployc.cost.simulate.clock import PAUSE, Clock
from deployc.cost.simulate.limits import STRETCH, Delays, Limits
from deployc.cost.simulate.load import Load
from deployc.cost.simulate.sequence import Sequence
from deployc.cost.simulate.trace import Record, Trace
from deployc.cost.step.time import StepTime
from deployc.cost.step.work import Work


@dataclass(slots=True)
class Scheduler:
    """The state of one engine. `time` is that of a step by its work."""

    load: Load
    limits: Limits
    delays: Delays
    time: Callable[[Work], StepTime]
    trace: Trace
    cache: Cache
    clock: Clock
    step: int = 0  # number of the next step
    arriving: list[tuple[float, int]] = field(default_factory=list)  # heap of (seen at, request)
    unsent: int = 0  # the next request of a closed load
    waiting: deque[Sequence] = field(default_factory=deque)
    running: dict[int, Sequence] = field(default_factory=dict)  # in order of admission; each takes a place
    cut: Sequence | None = None  # of these, the one whose prompt goes on: always the last
    ending: list[tuple[int, int, Sequence]] = field(default_factory=list)  # heap of (last step, its number, sequence)
    leaving: deque[tuple[int, int]] = field(default_factory=deque)  # (step in which the place is free, request)
    decodes: int = 0
    context: int = 0  # tokens of all decoding sequences
    begun: int = 0  # sequences that have begun to decode: as they are admitted
    untold: list[tuple[int, str]] = field(default_factory=list)  # (request, "first" or "done") of the last step
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
                self._tell(self.clock.now)
                self._wait()
                continue
            if self.untold:
                self._tell(self.clock.answered(self.time(work)))
            alike = not (preempted or work.begun or work.finished)
            count = 1 if not alike else self._parts(work) if work.prompts else self._until_change()
            self._pass(count, work)
            left -= self._end(ended)
        self._tell(self.clock.now)
        return self.trace

    def _send_first(self) -> None:
        load = self.load
        if load.concurrency:
            self.unsent = min(load.concurrency, load.requests)
            seen = self.delays.travel
            for index in range(self.unsent):
                heappush(self.arriving, (seen, index))
                seen += self.delays.between(load.inputs[index])
        else:
            for index, at in enumerate(load.arrivals):
                self.trace.sent[index] = at
                heappush(self.arriving, (at + self.delays.travel, index))

    def _see(self) -> None:
        """What is known when the next step is formed: places that are free, requests that have come."""
        while self.leaving and self.leaving[0][0] <= self.step:
            self._free(self.leaving.popleft()[1])
        while self.arriving and self.arriving[0][0] <= self.clock.formed:
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
        if self.cut is not None and len(self.running) > 1:
            part = min(self.cut.prompt - self.cut.computed, self._budget())
            if not self.cache.fits(self.decodes + part):
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
            victim.began = victim.last = victim.number = -1
        else:
            return  # its last token is in flight
        victim.computed = victim.shared = 0
        self.waiting.appendleft(victim)

    def _form(self, *, admitting: bool) -> tuple[Work, list[Sequence]]:
        """The next step, and whose prompts end in it."""
        self.cache.grow(self.decodes)
        self.blocked_by = "" if admitting else "memory"
        budget, sequence = self._budget(), self.cut
        ended: list[Sequence] = []
        parts, tokens, area, begun = 0, 0, 0.0, 0
        while tokens < budget:
            if sequence is None:
                sequence = self._admit(budget - tokens) if admitting else None
                if sequence is None:
                    break
                begun += 1
            part = min(sequence.prompt - sequence.computed, budget - tokens)
            parts, tokens, area = parts + 1, tokens + part, area + part * (sequence.computed + part / 2)
            self.cache.take(sequence, part)
            if sequence.computed == sequence.prompt:
                ended.append(sequence)
                sequence = None
        self.cut = sequence
        return Work(self.decodes, self.context, parts, tokens, area, len(ended), begun), ended

    def _budget(self) -> int:
        """Tokens of prompts that the next step takes."""
        return self.limits.max_num_batched_tokens - self.decodes

    def _admit(self, budget: int) -> Sequence | None:
        """The first waiting request, where there is a place and room for its prompt."""
        self.blocked_by = ""
        if not self.waiting:
            return None
        first = self.waiting[0]
        if len(self.running) >= self.limits.max_num_seqs:
            self.blocked_by = "slots"
            return None
        if self.running and not self.cache.admits(first, budget):
            self.blocked_by = "memory"
            return None
        self.cache.admit(first)
        self.running[first.request] = first
        return self.waiting.popleft()

    def _wait(self) -> None:
        """There is nothing to form: for the end of the step in flight, or for the next request."""
        now = self.clock.now
        if self.leaving:
            begins = now + PAUSE
            while self.leaving:
                self._free(self.leaving.popleft()[1])
        else:
            begins = max(now, self.arriving[0][0])
        if self.trace.record is not None:
            self.trace.record.add(0, None, begins)
        self.clock.wait(begins)

    def _parts(self, work: Work) -> int:
        """Steps that take part after part of the prompt that goes on, so that no other is admitted."""
        cut = self.running[next(reversed(self.running))]
        ends = [end for end, *_ in self.ending[:1]] + [end for end, _ in self.leaving][:1]
        more = (cut.prompt - cut.computed - 1) // work.tokens // STRETCH
        more = max(0, min([more, *(end - self.step - 1 for end in ends)]))
        if len(self.running) > 1:
            more = self.cache.steps(self.decodes + work.tokens, more)
        self.cache.take(cut, work.tokens * more)
        return 1 + more

    def _until_change(self) -> int:
        """Steps of pure decoding until a sequence ends, a place is free for one that waits, one comes, or blocks run
        out."""
        count = self.ending[0][0] - self.step + 1
        if self.waiting and self.waiting[0].kept and not self.limits.whole_prompts:
            count = 1  # with each block of it that is overwritten its first part needs one less
        elif self.waiting and self.leaving:
            count = min(count, self.leaving[0][0] - self.step)
        elif self.arriving and not self.waiting:
            count = min(count, self._until_seen(count))
        if len(self.running) > 1:
            count = 1 + self.cache.steps(self.decodes, count - 1)
        return count

    def _until_seen(self, most: int) -> int:
        """Steps until the next arrival is seen, or fewer: as many as it takes if all were as long as the last."""
        ahead = self.arriving[0][0] - self.clock.now
        if ahead <= 0:
            return 1
        longest = self.time(Work(self.decodes, self.context + self.decodes * (most - 1))).alone
        return max(1, math.ceil(ahead / longest))

    def _pass(self, count: int, work: Work) -> None:
        """`count` steps like the one formed: time passes, every decoding sequence grows by as many tokens."""
        more, start, trace = self.decodes * (count - 1), self.clock.now, self.trace
        if count > 1:
            self.cache.grow(more)
            work = work._replace(context=self.context + more / 2, area=work.area + work.tokens**2 * (count - 1) / 2)
        self.clock.steps(count, self.time(work))
        self.step += count
        self.context += self.decodes * count
        passed = self.clock.now - start
        trace.steps += count
        trace.busy += passed
        trace.running += passed * work.decodes
        if self.blocked_by == "memory":
            trace.short_of_memory += passed
        elif self.blocked_by == "slots":
            trace.short_of_slots += passed
        if trace.record is not None:
            trace.record.add(count, work, self.clock.now)

    def _end(self, prompts: list[Sequence]) -> int:
        """Last tokens came in the last step, and first ones of `prompts`. Returns how many requests ended."""
        last, done = self.step - 1, 0
        while self.ending and self.ending[0][0] <= last:
            _, number, sequence = heappop(self.ending)
            if sequence.number != number:
                continue  # it was preempted, and will end later
            self.decodes -= 1
            self.context -= sequence.prompt + sequence.grown(self.step)
            self._leave(sequence.request)
            done += 1
        for sequence in prompts:
            request = sequence.request
            if sequence.left == self.load.outputs[request]:
                self.untold.append((request, "first"))
            sequence.began, sequence.last = last, last + sequence.left - 1
            if sequence.left <= 1:
                self._leave(request)
                done += 1
                continue
            self.begun = sequence.number = self.begun + 1
            heappush(self.ending, (sequence.last, sequence.number, sequence))
            self.decodes += 1
            self.context += sequence.prompt
        return done

    def _leave(self, request: int) -> None:
        """It has its last token."""
        self.untold.append((request, "done"))
        self.leaving.append((self.step - 1 + self.limits.ahead, request))

    def _tell(self, at: float) -> None:
        """What the last step gave is seen; the client of each request that is done sends the next one."""
        done, seen = 0, at + self.delays.travel
        for request, name in self.untold:
            self._mark(request, name, at)
            if name == "done" and self.load.concurrency and self.unsent < self.load.requests:
                self._mark(self.unsent, "sent", at)
                heappush(self.arriving, (seen + self.delays.between(self.load.inputs[self.unsent]) * done, self.unsent))
                self.unsent += 1
            done += name == "done"
        self.untold.clear()

    def _mark(self, request: int, name: str, at: float) -> None:
        getattr(self.trace, name)[request] = at
        if self.trace.record is not None:
            getattr(self.trace.record, name)[request] = len(self.trace.record.stages)


def simulate(
    load: Load, limits: Limits, delays: Delays, time: Callable[[Work], StepTime], *, record: bool = False
) -> Trace:
    """One engine under a load, from an empty start until every request is answered."""
    count = load.requests
    kept = Record(sent=[-1] * count, first=[0] * count, done=[0] * count) if record else None
    trace = Trace([0.0] * count, [0.0] * count, [0.0] * count, record=kept)
    cache, clock = Cache(limits, load.shared_prefix), Clock(limits.ahead)
    return Scheduler(load, limits, delays, time, trace, cache, clock).run()
