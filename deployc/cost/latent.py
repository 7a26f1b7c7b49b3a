"""What latent attention (MLA) holds beside a layer while the engine profiles its memory."""

from __future__ import annotations

from deployc.cost.kv_cache import layout
from deployc.types.choices import Choices
from deployc.types.facts import Facts

MOST = 64 * 1024
"""Tokens of context that are expanded at once, at most."""


def expanded_context(facts: Facts, choices: Choices) -> float:
    """Elements of keys and values of one chunk of context, all heads of a rank; 0 without latent attention.

    vllm/model_executor/layers/attention/mla_attention.py, forward without metadata and
    determine_chunked_prefill_workspace_size (0.19.0, 0.25.1): eight requests of full length or four blocks for each
    sequence, at most 64 Ki tokens, and at least a block for each sequence.
    """
    model = facts.model.architecture
    if all(cache.kind != "mla" for cache in model.caches):
        return 0.0
    seqs, block = choices.max_num_seqs.value, layout(facts, choices).block_size
    tokens = max(min(max(8 * choices.max_model_len.value, 4 * seqs * block), MOST), seqs * block)
    return float(tokens * expanded_width(facts, choices))


def expanded_width(facts: Facts, choices: Choices) -> int:
    """Elements of a token's keys and values as kv_b_proj expands them, all heads of a rank."""
    config = facts.model.language_config
    heads = -(-facts.model.architecture.heads // choices.tensor_parallel_size.value)
    return int(heads * (config["qk_nope_head_dim"] + config["v_head_dim"]))
