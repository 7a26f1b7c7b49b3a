"""What each layer of a model keeps under these choices: LayerCache -> CacheSpec."""

from __future__ import annotations

from itertools import accumulate

from deployc.cost.kv_cache.block_size import block_tokens, checkpoint, keeps_every_state
from deployc.cost.kv_cache.element import heads_on_rank, state_bytes, token_bytes
from deployc.cost.kv_cache.groups import Kinds
from deployc.cost.kv_cache.spec import CacheSpec
from deployc.cost.parallel import stage_layers
from deployc.cost.runner import model_runner
from deployc.types.architecture import LayerCache
from deployc.types.choices import Choices
from deployc.types.facts import Facts


def layer_specs(facts: Facts, choices: Choices) -> Kinds:
    """Each kind of layer with their numbers, in the order in which they first occur."""
    kept, tokens = facts.model.architecture.caches, block_tokens(facts, choices)
    return tuple(
        ((_state if cache.kind == "state" else _attention)(cache, facts, choices, tokens), cache.layers)
        for cache in sorted(kept, key=lambda cache: cache.layers[:1])
        if cache.layers
    )


def in_flight(facts: Facts, choices: Choices) -> int:
    """Tokens that are scheduled and not settled, for which windows keep what they would let go.

    vllm/config/vllm.py, max_concurrent_batches: asynchronous scheduling holds two steps (on the V2 runner one more
    than there are pipeline stages); the CPU engine has none (vllm/platforms/cpu.py).
    """
    batch, stages = choices.max_num_batched_tokens.value, choices.pipeline_parallel_size.value
    if not facts.calibration.memory.kv.batches_in_flight:
        return batch
    if facts.smallest.name == "cpu":
        return batch * stages
    return batch * (stages + 1 if model_runner(facts, choices) == "V2" or stages == 1 else stages)


def stages(facts: Facts, choices: Choices) -> tuple[range, ...]:
    """The numbers of the layers of each pipeline stage."""
    sizes = stage_layers(facts.model.architecture.layers, choices.pipeline_parallel_size.value)
    return tuple(range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True))


def _attention(cache: LayerCache, facts: Facts, choices: Choices, tokens: int) -> CacheSpec:
    page = tokens * token_bytes(cache, facts, choices)
    shape = (heads_on_rank(cache, choices), cache.head_dim, cache.head_dim_v)
    return CacheSpec(cache.kind, tokens, page, cache.window, shape=shape)


def _state(cache: LayerCache, facts: Facts, choices: Choices, tokens: int) -> CacheSpec:
    """Its page is as large as the state; beside attention it is padded to that page when groups are made.

    Without prefix caching a request has one state; with it ("align") the last and the one before, and a third where a
    prefill exports one; in mode "all" one a block (vllm/v1/kv_cache_interface.py, MambaSpec).
    """
    size = state_bytes(cache, choices)
    if not choices.enable_prefix_caching.value:
        return CacheSpec("state", choices.max_model_len.value, size, states=1)
    if keeps_every_state(facts, choices):
        return CacheSpec("state", tokens, size)
    return CacheSpec("state", tokens, size, states=3 if checkpoint(facts, cache.name) else 2)
