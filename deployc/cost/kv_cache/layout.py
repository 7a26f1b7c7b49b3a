"""The cache of one engine: bytes of a block, blocks, tokens as the engine logs them, requests that fit.

vllm/v1/core/kv_cache_utils.py (0.16 to 0.32), kv_cache_planning.py (0.33): one pool of blocks for all groups; a block
is as large as the largest group's pages together; a request holds blocks of each group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from deployc.cost.kv_cache.groups import CacheGroup, grouped
from deployc.cost.kv_cache.specs import in_flight, layer_specs, stages
from deployc.types.choices import Choices
from deployc.types.engine_kv import EngineKv
from deployc.types.facts import Facts

ENDLESS = 2**31 - 1
"""Tokens of the longest request where nothing that is kept grows with it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the engine forms its cache on the fullest card, for requests of at most `max_model_len` tokens.

    `available` is in bytes a card, a length in tokens.
    """

    groups: tuple[CacheGroup, ...]
    block_bytes: int  # of one block, on the fullest card
    checked_bytes: int  # of one block, as the check at start counts it
    max_model_len: int
    in_flight: int  # tokens being computed at once
    kv: EngineKv
    refusal: str = ""  # why the engine cannot lay out such layers; "" = it can

    @property
    def block_size(self) -> int:
        """Tokens a block of the group with the smallest."""
        return min((group.spec.tokens for group in self.groups), default=0)

    @property
    def token_bytes(self) -> int:
        """What one more token of a long request takes on a card: windows and states take nothing more."""
        return round(sum(self.block_bytes / g.spec.tokens for g in self.groups if g.spec.grows))

    @property
    def uniform(self) -> bool:
        """Whether every token takes the same memory."""
        return len(self.groups) == 1 and self.groups[0].spec.grows

    def request_blocks(self, length: int) -> int:
        """Blocks of one request of `length` tokens at its peak, when its last tokens are computed in full batches."""
        return sum(group.spec.blocks(length, self.in_flight) for group in self.groups)

    def request_bytes(self, length: int) -> int:
        """What a request of `length` tokens holds while it is answered: one token at a time, so windows are small."""
        return self.block_bytes * sum(group.spec.blocks(length, 1) for group in self.groups)

    def blocks(self, available: float) -> int:
        """Whole blocks in the memory that is left; none where it is negative. Nothing kept: the null block alone."""
        return max(0, math.floor(available / self.block_bytes)) if self.block_bytes else 1

    def logged_tokens(self, available: float) -> int:
        """Tokens of the line "GPU KV cache size"; in a model of several groups they are no capacity."""
        if not self.groups:
            return 0
        if self.kv.tokens_by_request:
            return int(self.concurrency(available) * self.max_model_len)
        return self.blocks(available) // len(self.groups) * self.block_size

    def usable_tokens(self, available: float) -> int:
        """Tokens that requests can hold: whole requests of `max_model_len`, and of one more the part that fits.

        One block is the null block (vllm/v1/core/block_pool.py).
        """
        each = self.request_blocks(self.max_model_len)
        if not each:
            return 0
        whole, rest = divmod(max(0, self.blocks(available) - 1), each)
        return whole * self.max_model_len + self._most(
            lambda length: self.request_blocks(length) <= rest, limit=self.max_model_len
        )

    def concurrency(self, available: float) -> float:
        """Requests of `max_model_len` at once, as the engine logs it: blocks over blocks a request."""
        each = self.request_blocks(self.max_model_len)
        return self.blocks(available) / each if each else 0.0

    def needed(self, length: int, requests: int = 1) -> int:
        """Bytes without which the engine refuses to start with max_model_len `length`; of several, what they hold.

        Versions differ in whether they count the null block, and all groups.
        """
        if requests == 1 and not self.kv.all_groups_checked and self.groups:
            each = self.groups[0].spec.blocks(length, self.in_flight)
        else:
            each = self.request_blocks(length)
        null = 1 if self.kv.null_block_checked or requests > 1 else 0
        return (each * requests + null) * (self.checked_bytes if requests == 1 else self.block_bytes)

    def longest(self, available: float, requests: int = 1) -> int:
        """The largest max_model_len of which `requests` can run at once, beside the null block, and that starts.

        The check at start may count more than requests hold: up to 0.16 the pages of all pipeline stages.
        """
        return self._most(lambda length: self.holds(available, length, requests))

    def holds(self, available: float, length: int, requests: int = 1) -> bool:
        """Whether the engine starts with that max_model_len, and `requests` of it run at once."""
        free = self.blocks(available) - 1
        return self.request_blocks(length) * requests <= free and self.needed(length) <= available

    def held(self, length: int) -> int:
        """Bytes with which the engine starts and one request of that length runs: the more of the two."""
        return max(self.needed(length), (self.request_blocks(length) + 1) * self.block_bytes)

    def estimated(self, available: float) -> int:
        """What the engine names as "the estimated maximum model length" where max_model_len does not fit."""
        return self._most(lambda length: self.needed(length) <= available, limit=self.max_model_len)

    def read_bytes(self, context: float) -> float:
        """Bytes of the cache that a request of `context` tokens has read in one step of decoding."""
        return sum(size * min(most, context) for most, size in self.reads)

    @property
    def reads(self) -> tuple[tuple[float, float], ...]:
        """Bytes a token over all layers of one kind, and the most tokens of which they are read."""
        found = []
        for group in self.groups:
            kind, size = group.spec.kind, group.all_bytes
            most = {"sliding": group.spec.window, "chunked": group.spec.window, "state": 1}.get(kind, math.inf)
            found.append((most, size if kind == "state" else size / group.spec.tokens))
        return tuple(found)

    def _most(self, fits: Callable[[int], bool], limit: int = ENDLESS) -> int:
        """The largest length up to `limit` that fits; 0 where none does."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low


def layout(facts: Facts, choices: Choices) -> Layout:
    """The cache of one engine under these choices. Raises LookupError for facts without the engine's behaviours."""
    kv = facts.calibration.memory.kv
    made = grouped(layer_specs(facts, choices), kv)
    block = max((group.bytes(stage) for stage in stages(facts, choices) for group in made.groups), default=0)
    whole = max((group.all_bytes for group in made.groups), default=0)
    if not kv.stage_checked and any(len(group.kinds) > 1 for group in made.groups):
        block = whole  # a group of several kinds kept the pages of all stages
    return Layout(
        groups=made.groups,
        block_bytes=block,
        checked_bytes=block if kv.stage_checked else whole,
        max_model_len=choices.max_model_len.value,
        in_flight=in_flight(facts, choices),
        kv=kv,
        refusal=made.refusal,
    )
