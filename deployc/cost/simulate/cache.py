"""Which tokens the KV cache holds, and what it still knows of those it gave up.

vllm/v1/core/kv_cache_manager.py (allocate_slots) and block_pool.py, 0.25.1 and 0.32.0: a waiting prompt is taken where
all of it would fit (scheduler_reserve_full_isl, on since 0.19.0; 0.16 to 0.18 look at its first part alone), though it
is given only the blocks of its part. Nothing is kept back (watermark, since 0.24.0, is 0). With prefix caching a freed
block is known until it is given out again, the longest free one first and of a sequence its tail first.
"""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.simulate.limits import Limits
from deployc.cost.simulate.sequence import Sequence


@dataclass(slots=True)
class Cache:
    """Counts of tokens and sequences, so that nothing drifts; the room turns them into bytes."""

    limits: Limits
    prefix: int  # tokens that all prompts have in common
    sequences: int = 0
    tokens: int = 0  # that these hold; of the common prefix once
    known: int = 0  # tokens of the common prefix that are cached
    users: int = 0  # sequences that hold them; a prompt shorter than the prefix counts as one that holds all of it
    given: float = 0.0  # bytes given out since the start

    def fits(self, tokens: int, sequences: int = 0) -> bool:
        """Whether so many more have room."""
        return self._bytes(self.tokens + tokens, self.sequences + sequences) <= self.limits.room.bytes

    def steps(self, tokens: int, most: int) -> int:
        """How many more steps of so many tokens have room: `most` at most."""
        if not tokens or self.fits(tokens * most):
            return most
        room = self.limits.room
        return int((room.bytes - self._bytes(self.tokens, self.sequences)) // (room.token * tokens))

    def admits(self, sequence: Sequence, part: int) -> bool:
        """Whether all of its prompt has room, or the `part` for which there is budget. Blocks that are known but free
        count as if they were to be filled."""
        known = self.remembers(sequence)
        tokens = sequence.prompt if self.limits.whole_prompts else min(sequence.prompt, known + part)
        return self.fits(tokens - (min(self.known, known) if self.users else 0), 1)

    def admit(self, sequence: Sequence) -> None:
        """It holds what the cache knows of its prompt."""
        sequence.computed = self.remembers(sequence)
        sequence.shared = min(self.known, sequence.computed)
        if sequence.shared:
            self.tokens += 0 if self.users else self.known
            self.users += 1
        self.sequences += 1
        self.tokens += sequence.computed - sequence.shared
        self.given += self.limits.room.base

    def remembers(self, sequence: Sequence) -> int:
        """Tokens of a waiting prompt that need not be computed: whole blocks, never the last token."""
        if not self.limits.prefix_caching:
            return 0
        own = sequence.kept
        if own:
            own = max(0, min(own, int((sequence.kept_until - self.given) / self.limits.room.token)))
        return min(max(own, self.known), sequence.prompt - 1) // self.limits.block_size * self.limits.block_size

    def take(self, sequence: Sequence, part: int) -> None:
        """A part of a prompt is computed; the first whole blocks of the common prefix become known."""
        sequence.computed += part
        self.grow(part)
        if self.prefix and self.limits.prefix_caching and self.known < self.prefix:
            self._learn(sequence)

    def grow(self, tokens: int) -> None:
        """Tokens are decoded or computed."""
        self.tokens += tokens
        self.given += self.limits.room.token * tokens

    def release(self, sequence: Sequence, step: int) -> None:
        """It ended before `step`, or is preempted as that is formed."""
        self.tokens -= sequence.computed - sequence.shared + sequence.grown(step)
        self.sequences -= 1
        if sequence.shared:
            self.users -= 1
            self.tokens -= 0 if self.users else self.known

    def preempt(self, sequence: Sequence, step: int) -> None:
        """Its blocks are free from `step` on. What it had computed, without a token still in flight, remains known."""
        cached, block = sequence.computed + max(0, sequence.grown(step) + 1 - self.limits.ahead), self.limits.block_size
        free = self.limits.room.bytes - self._bytes(self.tokens, self.sequences)
        sequence.kept = cached // block * block
        sequence.kept_until = self.given + free + self._bytes(sequence.computed + sequence.grown(step), 1)
        self.release(sequence, step)

    def _learn(self, sequence: Sequence) -> None:
        """What `sequence` has computed of the common prefix is what all others will use, and held once."""
        cached = min(self.prefix, sequence.computed) // self.limits.block_size * self.limits.block_size
        if cached > self.known:
            self.users += 0 if sequence.shared else 1
            sequence.shared = self.known = cached

    def _bytes(self, tokens: int, sequences: int) -> float:
        return self.limits.room.base * sequences + self.limits.room.token * tokens
