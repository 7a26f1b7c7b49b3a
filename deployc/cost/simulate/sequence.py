"""One request in the scheduler: a prompt to compute, then a token a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Sequence:
    """Tokens, and numbers of steps. A preempted one begins again, with a prompt that its answer so far has joined."""

    request: int
    prompt: int  # to be computed before it decodes
    left: int  # of its answer, when the prompt is computed
    computed: int = 0  # of the prompt
    shared: int = 0  # of these, in blocks of the common prefix that all use
    began: int = -1  # step in which its prompt ended
    last: int = -1  # step of its last token
    number: int = -1  # among all that have begun to decode
    kept: int = 0  # preempted: tokens at its head that were in the prefix cache then
    kept_until: float = 0.0  # … and bytes given out in all by the time that the last of these is overwritten

    def grown(self, step: int) -> int:
        """Tokens that it has decoded before `step`."""
        return min(self.last + 1, step) - 1 - self.began if self.began >= 0 else 0

    def decodes(self, step: int) -> bool:
        """Whether `step` is to give it a token."""
        return self.began >= 0 and self.last >= step
