"""What one layer keeps in one block, and how many blocks a request of some length holds of it."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.types.architecture import CacheKind


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """Layers with equal specs can share a block table (vllm/v1/kv_cache_interface.py, KVCacheSpec)."""

    kind: CacheKind
    tokens: int  # a block
    bytes: int  # of one block in one layer, padding included
    window: int = 0  # tokens, of "sliding" and "chunked"
    states: int = 0  # blocks a request of "state"; 0 = one for each block of tokens
    shape: tuple[int, ...] = ()  # heads and sizes: pages of equal size may still differ

    def blocks(self, length: int, in_flight: int) -> int:
        """Blocks of a request of `length` tokens of which `in_flight` are being computed.

        The specs' max_memory_usage_bytes over their page size. A window need not start at a block's first token:
        one block more.
        """
        if self.kind == "sliding":
            return _blocks(min(self.window - 1 + in_flight, length), self.tokens) + 1
        if self.kind == "chunked":
            return _blocks(min(self.window + in_flight, length), self.tokens)
        if self.kind == "state" and self.states:
            return self.states
        return _blocks(length, self.tokens)

    @property
    def grows(self) -> bool:
        """Whether a longer request always holds more of it."""
        return self.kind in ("full", "mla") or (self.kind == "state" and not self.states)

    def like(self, other: CacheSpec) -> bool:
        """Whether both hold equally many blocks of any request, whatever their pages: UniformTypeKVCacheSpecs."""
        if self.tokens != other.tokens:
            return False
        if self.kind in ("full", "mla"):
            return other.kind in ("full", "mla")
        return (self.kind, self.window, self.states) == (other.kind, other.window, other.states)


def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)
