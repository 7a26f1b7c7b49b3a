"""What people ask about memory: what is needed of what is reserved, how long, how many, on how small a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployc.types.figure import Figure


@dataclass(frozen=True, slots=True)
class Share:
    """A named part of something, in bytes on the fullest card."""

    name: str
    bytes: float


@dataclass(frozen=True, slots=True)
class Graphs:
    """Full CUDA graphs of one engine."""

    captured: int
    with_adapters: bool  # each batch size twice: with adapters, and without
    in_budget: bool  # whether the engine takes its own estimate of them from the budget, or leaves them outside


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Of the prompts alone: `rate` x `tokens` x 2 x `weights` operations a second, over `cards`."""

    rate: Figure  # requests/s of the whole deployment
    tokens: float  # of a prompt that are not in the prefix cache
    weights: float  # that a token is multiplied with, on all cards of an engine
    cards: int
    needed: Figure  # FLOP/s of one card
    peak: float  # FLOP/s of one card, dense


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one engine; bytes are those of the fullest card, lengths in tokens."""

    in_flight: Figure  # requests that the workload has running at once
    kv_cache_mean: Figure  # B that they hold when all are of mean length
    kv_cache_p95: Figure  # B when all are of the 95th percentile
    needed: Figure  # B of the least budget that would do
    needed_for: Literal["load", "max_model_len"]  # what sets it: the load, or the requests of full length
    gpu_memory_utilization: float | None  # the share that `needed` is, in whole per cent; None = more than the card
    longest: Figure  # tokens of one request, by memory alone
    longest_fp8: Figure | None  # the same with an fp8 KV cache; None where there is one, or no kernel for it
    positions: int  # the longest that the model can
    own_positions: int  # the same without scaling
    requests_mean: Figure  # requests of mean length at once
    tokens_are_capacity: bool  # whether every token takes the same: else the logged "KV cache size" is no capacity
    smallest_card: str  # profile of the smallest card that holds the workload; "" = none does, or none is needed
    smallest_card_memory: float  # bytes; 0 = none
    weights: tuple[Share, ...]  # parameters, then what loading adds to them
    activations: tuple[Share, ...]  # moments of the profiling run, the peak first; none on the CPU
    activations_kept: float  # B that are there at every moment beside it
    graphs: Graphs | None  # None = none are captured
    arithmetic: Arithmetic | None  # None = the card's peak is not known
