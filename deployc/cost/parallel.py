"""Whether a model can be spread over so many cards: what the engine asserts when it makes its layers."""

from __future__ import annotations

from deployc.types.architecture import Architecture

VOCABULARY_PADDING = 64
"""vllm/model_executor/layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE."""


def undivided(architecture: Architecture, tensor_parallel_size: int) -> list[str]:
    """The dimensions, in words, that do not divide; empty where the engine would start.

    Heads: vllm/config/model.py. KV heads: each model's attention (`total_num_kv_heads % tp_size`, or the other way
    round where they are replicated). The rest: `divide` of vllm/distributed/utils.py.
    """
    tp, kv = tensor_parallel_size, architecture.kv_heads
    vocabulary = -(-architecture.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    inner = architecture.moe_intermediate_size if architecture.experts else architecture.intermediate_size
    found = []
    if architecture.heads % tp:
        found.append(f"{architecture.heads} attention heads")
    if kv % tp and tp % kv:
        found.append(f"{kv} KV heads")
    if inner % tp:
        found.append(f"the intermediate size {inner:,}")
    if vocabulary % tp:
        found.append(f"the padded vocabulary {vocabulary:,}")
    return found
