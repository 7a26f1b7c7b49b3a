"""How one version of the engine forms its KV cache, where versions differ: `profiles/engines/kv_cache.json`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockRule:
    """Tokens a block of latent attention, by the backend that the engine takes; what is None or 0 holds for all."""

    tokens: int
    capability: int = 0  # major compute capability
    fp8: bool | None = None  # the cache holds fp8
    sparse: bool | None = None  # the model has an indexer (DeepSeek V3.2)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State layers that export a state from inside a prefill, under prefix caching: one more block a request."""

    name: str  # of the layers, as in LayerCache
    capabilities: tuple[int, ...] = ()  # major ones of the cards where they do; empty = all
    tokens: int = 1  # a block of theirs is a multiple of


@dataclass(frozen=True, slots=True)
class EngineKv:
    """Behaviours that the layout of the cache depends on, each with its source in the file they are read from."""

    one_group_below: float  # no type of layer with more than so many times the layers of the rarest: one group each
    tokens_by_request: bool  # "KV cache size" is concurrency x max_model_len; before, blocks over groups x block size
    null_block_checked: bool  # the check at start leaves out the null block
    all_groups_checked: bool  # … sums all groups; before, it took the first one for all
    stage_checked: bool  # … looks at the layers of each pipeline stage; before, at those of the whole model
    batches_in_flight: bool  # windows reserve for each batch in flight; before, for one
    odd_pages_padded: bool  # attention pages that do not divide the largest are padded; before, the engine refuses
    window_value_size: bool  # window layers use the values' own head size; before, the keys' twice
    states_at_every_block: tuple[str, ...]  # architectures that keep a state for each block, under prefix caching
    checkpoints: tuple[Checkpoint, ...]
    latent_state_tokens: int  # a block of latent attention beside states is a multiple of; 0 = the backend's own
    latent_blocks: tuple[BlockRule, ...]  # on CUDA; the first that applies
    latent_block_cpu: int
    latent_fp8_triton: bool  # Triton's latent attention reads fp8, from 8.9 on; before, cards of 9.0 and 10.x alone
    sparse_fp8_bytes: int  # of one token in fp8 in a latent layer with an indexer
