"""vLLM's V1 scheduler, step by step: who is in the batch, and when each request's tokens come.

vllm/v1/core/sched/scheduler.py and async_scheduler.py, vllm/v1/engine/core.py (step_with_batch_queue), 0.25.1: running
requests take the token budget first, then waiting ones in order of arrival; a prompt that does not fit is cut and goes
on in the next step; it is admitted if the cache holds all of it; the last admitted is preempted where blocks run out.
With asynchronous scheduling a step is formed at the end of the one before the last, so a request that arrives during a
step waits for the rest of it and for one more, and a place is free two steps after its last token.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from deployc.cost.simulate.load import Load
from deployc.cost.simulate.room import Room
from deployc.cost.simulate.trace import Record, Trace
from deployc.cost.step.work import Work

AHEAD = 2
"""Steps between forming one and the last whose outcome is known: asynchronous scheduling keeps two in flight."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one engine takes at once."""

    max_num_seqs: int
    max_num_batched_tokens: int
    room: Room
    prefix_caching: bool = True
    block_size: int = 16


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds outside the steps."""

    travel: float  # from an answer to the scheduler's seeing the next request of that client
    spacing: float  # between requests sent at once
    idle: float  # that an idle engine waits for more


@dataclass(slots=True)
class _Prompt:
    """A request of which part of the prompt is computed."""

    request: int
    computed: int
    tokens: int


@dataclass(slots=True)
class Scheduler:
    """The state of one engine. `seconds` is the time of a step by its work."""

    load: Load
    limits: Limits
    delays: Delays
    seconds: Callable[[Work], float]
    trace: Trace
    step: int = 0  # number of the next step
    now: float = 0.0  # end of the last step
    formed: float = 0.0  # when the next step was formed: the end of the one before the last
    arriving: list[tuple[float, int]] = field(default_factory=list)  # heap of (seen at, request)
    unsent: int = 0  # the next request of a closed load
    waiting: deque[int] = field(default_factory=deque)
    prompts: list[_Prompt] = field(default_factory=list)
    ending: list[tuple[int, int, int]] = field(default_factory=list)  # heap of (last step, admitted as, request)
    decodes: int = 0
    context: int = 0  # tokens of all decoding sequences
    leaving: deque[tuple[int, int]] = field(default_factory=deque)  # (step at which the place is free, request)
    places: int = 0  # of max_num_seqs taken
    held: float = 0.0  # bytes of the cache taken
    holds: dict[int, float] = field(default_factory=dict)  # by request; of a decoding one as of its first token
    began: dict[int, tuple[int, int]] = field(default_factory=dict)  # (context, step) at the start of decoding
    again: dict[int, tuple[int, int]] = field(default_factory=dict)  # preempted: (prompt now, tokens still to come)
    admitted: int = 0
    prefix_kept: bool = False
    blocked_by: str = ""  # "memory" | "slots" | "": why the first waiting request was not admitted

    def run(self) -> Trace:
        """Until every request is answered."""
        self._send_first()
        left = self.load.requests
        while left:
            self._arrive()
            work, ended = self._form()
            if work is None:
                left -= self._decode()
            else:
                left -= self._compute(work, ended)
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

    def _arrive(self) -> None:
        """Places of ended requests are freed and arrivals seen, as of the time at which the next step is formed."""
        idle = not self.decodes and not self.prompts
        if idle:
            self.formed = self.now
            while self.leaving:
                self._free(self.leaving.popleft()[1])
            if not self.waiting and self.arriving:
                begins = max(self.now, self.arriving[0][0]) + self.delays.idle
                if self.trace.record is not None:
                    self.trace.record.wait(begins - self.now)
                self.now = self.formed = begins
        while self.leaving and self.leaving[0][0] <= self.step:
            self._free(self.leaving.popleft()[1])
        while self.arriving and self.arriving[0][0] <= self.formed:
            self.waiting.append(heappop(self.arriving)[1])

    def _free(self, request: int) -> None:
        self.places -= 1
        self.held -= self.holds.pop(request)

    def _form(self) -> tuple[Work | None, list[int]]:
        """The next step where it has prompts, and whose prompts end in it; None where it only decodes."""
        budget = self.limits.max_num_batched_tokens - self.decodes
        ended: list[int] = []
        tokens, area, parts, begun = 0, 0.0, 0, 0
        for prompt in self.prompts:
            part = min(prompt.tokens - prompt.computed, budget - tokens)
            if part > 0:
                tokens, area, parts = tokens + part, area + self._take(prompt, part, ended), parts + 1
        self.blocked_by = ""
        while self.waiting and tokens < budget:
            new = self._admit()
            if new is None:
                break
            self.prompts.append(new)
            part = min(new.tokens - new.computed, budget - tokens)
            tokens, area = tokens + part, area + self._take(new, part, ended)
            parts, begun = parts + 1, begun + 1
        if not tokens:
            return None, ended
        self.prompts = [prompt for prompt in self.prompts if prompt.computed < prompt.tokens]
        return Work(self.decodes, self.context, parts, tokens, area, len(ended), begun), ended

    def _take(self, prompt: _Prompt, part: int, ended: list[int]) -> float:
        """Adds a part to a prompt; returns its tokens x those before the middle of it."""
        area = part * (prompt.computed + part / 2)
        prompt.computed += part
        if self.load.shared_prefix and prompt.computed >= self.load.shared_prefix:
            self.prefix_kept = True
        if prompt.computed == prompt.tokens:
            ended.append(prompt.request)
        return area

    def _admit(self) -> _Prompt | None:
        """The first waiting request, where there is a place and room for all of its prompt."""
        request = self.waiting[0]
        if self.places >= self.limits.max_num_seqs:
            self.blocked_by = "slots"
            return None
        tokens = self.again[request][0] if request in self.again else self.load.inputs[request]
        known = self._known(tokens)
        needed = self.limits.room.held(tokens - known)
        if self.held + needed > self.limits.room.bytes and self.places:
            self.blocked_by = "memory"
            return None
        self.waiting.popleft()
        self.places += 1
        self.admitted += 1
        self.held += needed
        self.holds[request] = needed
        return _Prompt(request, known, tokens)

    def _known(self, tokens: int) -> int:
        """Tokens of a prompt that the prefix cache holds: whole blocks, never the last token."""
        if not (self.prefix_kept and self.limits.prefix_caching):
            return 0
        block = self.limits.block_size
        return min(self.load.shared_prefix, tokens - 1) // block * block

    def _compute(self, work: Work, ended: list[int]) -> int:
        """One step with prompts in it. Returns how many requests it ends."""
        self._pass(1, work)
        last = self.step - 1
        done = self._end(last)
        for request in ended:
            prompt, left = self.again.pop(request, (self.load.inputs[request], self.load.outputs[request]))
            if left == self.load.outputs[request]:
                self._mark(request, self.trace.first, "first")
            self.began[request] = (prompt, last)
            if left <= 1:
                self._leave(request, last, done)
                done += 1
                continue
            heappush(self.ending, (last + left - 1, self.admitted, request))
            self.decodes += 1
            self.context += prompt
        return done

    def _decode(self) -> int:
        """Steps of pure decoding until something changes. Returns how many requests they end."""
        count = self._until_change()
        if not count:
            self._preempt()
            return 0
        self._pass(count, Work(self.decodes, self.context + self.decodes * (count - 1) / 2))
        return self._end(self.step - 1)

    def _until_change(self) -> int:
        """Steps until a sequence ends, a place is free for one that waits or one arrives; 0: the cache is full."""
        count = self.ending[0][0] - self.step + 1
        if self.leaving and self.waiting:
            count = min(count, max(1, self.leaving[0][0] - self.step))
        elif self.arriving and not self.waiting:
            ahead = self.arriving[0][0] - self.now
            each = self.seconds(Work(self.decodes, self.context))
            count = min(count, max(1, math.ceil(ahead / each) + AHEAD - 1))
        grows = self.limits.room.token * self.decodes
        if self.held + grows * count > self.limits.room.bytes and self.decodes > 1:
            count = max(0, min(count, int((self.limits.room.bytes - self.held) // grows)))
        return count

    def _pass(self, count: int, work: Work) -> None:
        """`count` equal steps: time passes, every decoding sequence grows by as many tokens."""
        each = self.seconds(work)
        trace = self.trace
        self.formed = self.now + each * (count - 1)
        self.now += each * count
        self.step += count
        self.context += self.decodes * count
        self.held += self.limits.room.token * self.decodes * count
        trace.steps += count
        trace.busy += each * count
        trace.running += each * count * work.decodes
        if self.waiting and self.blocked_by == "memory":
            trace.short_of_memory += each * count
        elif self.waiting and self.blocked_by == "slots":
            trace.short_of_slots += each * count
        if trace.record is not None:
            trace.record.stages.append((count, work))

    def _end(self, last: int) -> int:
        """Requests whose last token came in step `last`."""
        done = 0
        while self.ending and self.ending[0][0] <= last:
            request = heappop(self.ending)[2]
            self._drop(request, last)
            self._leave(request, last, done)
            done += 1
        return done

    def _drop(self, request: int, last: int) -> None:
        """A sequence stops decoding; it keeps what it holds."""
        prompt, began = self.began[request]
        grown = last - began
        self.decodes -= 1
        self.context -= prompt + grown
        self.holds[request] += self.limits.room.token * grown

    def _leave(self, request: int, last: int, before: int) -> None:
        """A request is answered; `before` others were in the same step. Its client sends the next one."""
        self._mark(request, self.trace.done, "done")
        self.leaving.append((last + AHEAD, request))
        if self.load.concurrency and self.unsent < self.load.requests:
            self._mark(self.unsent, self.trace.sent, "sent")
            seen = self.now + self.delays.travel + self.delays.spacing * before
            heappush(self.arriving, (seen, self.unsent))
            self.unsent += 1

    def _preempt(self) -> None:
        """The last admitted gives up its blocks and waits in front, to compute all of it again."""
        victim = max(self.ending, key=lambda entry: entry[1])
        self.ending.remove(victim)
        heapify(self.ending)
        last, _, request = victim
        prompt, began = self.began[request]
        self._drop(request, self.step - 1)
        self._free(request)
        self.again[request] = (prompt + self.step - 1 - began, last - self.step + 1)
        self.waiting.appendleft(request)
        self.trace.preempted += 1

    def _mark(self, request: int, times: list[float], name: str) -> None:
        times[request] = self.now
        if self.trace.record is not None:
            getattr(self.trace.record, name)[request] = len(self.trace.record.stages)


def simulate(
    load: Load, limits: Limits, delays: Delays, seconds: Callable[[Work], float], *, record: bool = False
) -> Trace:
    """One engine under a load, from an empty start until every request is answered."""
    count = load.requests
    kept = Record(sent=[-1] * count, first=[0] * count, done=[0] * count) if record else None
    trace = Trace([0.0] * count, [0.0] * count, [0.0] * count, record=kept)
    return Scheduler(load, limits, delays, seconds, trace).run()
