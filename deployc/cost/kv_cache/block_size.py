"""Tokens a block: the platform's and backend's default, and more where a state must fit into a page of attention."""

from __future__ import annotations

from math import lcm

from deployc.cost.kv_cache.element import is_sparse, kv_dtype, state_bytes, token_bytes
from deployc.types.choices import Choices
from deployc.types.engine_kv import BlockRule, Checkpoint
from deployc.types.facts import Facts

GPU_BLOCK, CPU_BLOCK = 16, 128
"""vLLM's default on GPUs (vllm/config/cache.py); on the CPU engine (vllm/platforms/cpu.py)."""

MAMBA_CHUNK = 2048
"""Of layers whose config names no chunk: vllm/config/model.py, get_mamba_chunk_size."""


def block_tokens(facts: Facts, choices: Choices) -> int:
    """Tokens a block of the attention layers, before groups are made."""
    kept = facts.model.architecture.caches
    base = _base(facts, choices)
    attention = next((cache for cache in kept if cache.kind != "state"), None)
    largest = max((state_bytes(cache, choices) for cache in kept if cache.kind == "state"), default=0)
    if attention is None or not largest:
        return base
    return max(base, _beside_states(facts, choices, token_bytes(attention, facts, choices), largest, base))


def keeps_every_state(facts: Facts, choices: Choices) -> bool:
    """mamba_cache_mode "all": a state for each block of tokens, under prefix caching."""
    every = facts.calibration.memory.kv.states_at_every_block
    return choices.enable_prefix_caching.value and facts.model.architecture.name in every


def checkpoint(facts: Facts, name: str) -> Checkpoint | None:
    """How such state layers keep a state from inside a prefill on these cards."""
    capability = facts.smallest.compute_capability
    major = capability[0] if capability else 0
    rules = facts.calibration.memory.kv.checkpoints
    return next((r for r in rules if r.name == name and (not r.capabilities or major in r.capabilities)), None)


def _base(facts: Facts, choices: Choices) -> int:
    latent = any(cache.kind == "mla" for cache in facts.model.architecture.caches)
    kv = facts.calibration.memory.kv
    if facts.smallest.name == "cpu":
        return kv.latent_block_cpu if latent else int(facts.engine.cpu.get("block_size", CPU_BLOCK))
    if not latent:
        return facts.engine.block_size or GPU_BLOCK
    return next(rule.tokens for rule in kv.latent_blocks if _holds(rule, facts, choices))


def _holds(rule: BlockRule, facts: Facts, choices: Choices) -> bool:
    capability = facts.smallest.compute_capability
    return (
        (not rule.capability or (capability is not None and capability[0] == rule.capability))
        and rule.fp8 in (None, kv_dtype(facts, choices).startswith("fp8"))
        and rule.sparse in (None, is_sparse(facts))
    )


def _beside_states(facts: Facts, choices: Choices, token: int, state: int, base: int) -> int:
    """The smallest block whose page holds the state: HybridAttentionMambaModelConfig (up to 0.19),
    _align_hybrid_block_size of vllm/platforms/interface.py (from 0.20)."""
    kv = facts.calibration.memory.kv
    latent = any(cache.kind == "mla" for cache in facts.model.architecture.caches)
    unit = max(base, kv.latent_state_tokens) if latent else base
    if keeps_every_state(facts, choices):
        unit = lcm(unit, _chunk(facts))
    elif choices.enable_prefix_caching.value:
        exported = [checkpoint(facts, c.name) for c in facts.model.architecture.caches if c.kind == "state"]
        if all(exported):
            unit = lcm(unit, *(one.tokens for one in exported if one))
    return unit * -(-state // (unit * token))


def _chunk(facts: Facts) -> int:
    config = facts.model.language_config
    return int(config.get("mamba_chunk_size") or config.get("chunk_size") or MAMBA_CHUNK)
