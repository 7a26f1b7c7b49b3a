"""Models made of a few tensors, for tests of what the engine holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from configured import H200, QWEN_7B, card, choices_of, facts_of

from deployc.cost.weights import weight_bytes
from deployc.types.facts import Facts, GpuFacts, TensorGroup
from deployc.types.groups import expand

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "rope_theta": 500000.0,
}  # fmt: skip
QWEN3_30B: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "decoder_sparse_step": 1, "norm_topk_prob": True, "use_sliding_window": False, "rope_theta": 1000000.0,
}  # fmt: skip
A100 = card("a100-80", 79.15 * 2**30, 2.039e12, (8, 0), 312e12, "nvlink")


def facts_with(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
    config: Mapping[str, Any] = QWEN_7B,
    gpu: GpuFacts = A100,
    version: str = "0.25.1",
    **more: Any,
) -> Facts:
    """A model whose checkpoint holds these tensors: pattern -> dtype and shape; `more` are keys of its config.json."""
    facts = facts_of(config, (gpu,), version)
    groups = []
    for pattern, (dtype, shape) in tensors.items():
        count = 1
        for run in [part for part in pattern.split(".") if part.startswith("{")]:
            count *= len(expand_run(run))
        group = TensorGroup(pattern, dtype, shape, count)
        assert len(list(expand(group))) == count
        groups.append(group)
    model = replace(facts.model, tensors=tuple(groups), config={**facts.model.config, **more})
    return replace(facts, model=model)


def expand_run(text: str) -> range:
    """ "{0-3}" as the numbers it stands for."""
    first, last = text.strip("{}").split("-")
    return range(int(first), int(last) + 1)


def held_bytes(tensors: Mapping[str, tuple[str, tuple[int, ...]]], gpu: GpuFacts = A100, **more: Any) -> int:
    """Bytes on the fullest rank; `more` are fields of Choices, `config` is config.json and `keys` more of it."""
    config = more.pop("config", QWEN_7B)
    keys = more.pop("keys", {})
    return weight_bytes(facts_with(tensors, config, gpu, **keys), choices_of(**more))


__all__ = ["A100", "H200", "LLAMA_8B", "QWEN3_30B", "QWEN_7B", "facts_with", "held_bytes"]
