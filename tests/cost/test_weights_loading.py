"""The engine's own line "Model loading took", from real starts, and the parts that it counts beside the parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import GIB, H200, HOST, QWEN_05B, QWEN_7B, SMOLLM2, card, choices_of, facts_of
from weighing import LLAMA_8B, QWEN3_30B

from deployc.cost.weights import loaded_bytes, loading_gap, weight_bytes
from deployc.cost.weights.loading import allocated
from deployc.cost.weights.rotary import rotary_tables
from deployc.types.architecture import LayerCache

MIB = 2**20
H100 = card("h100-sxm", 79.19 * GIB, 3.35e12, (9, 0), 989e12, "nvlink")
QWEN_32B = QWEN_7B | {
    "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
    "intermediate_size": 27648,
}  # fmt: skip
QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288,
    "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "use_sliding_window": False, "rope_theta": 1000000.0,
}  # fmt: skip
DEEPSEEK_V2_LITE = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 2048,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944,
    "vocab_size": 102400, "tie_word_embeddings": False, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "max_position_embeddings": 163840, "torch_dtype": "bfloat16", "attention_bias": False,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "version", "choices", "logged"),
    [
        (QWEN_7B, "0.25.1", {}, 14.29),
        (QWEN_7B, "0.25.1", {"tensor_parallel_size": 2}, 7.16),
        (QWEN_7B, "0.25.1", {"weights": "int8"}, 8.18),
        (QWEN_05B, "0.25.1", {}, 0.93),
        (QWEN_32B, "0.25.1", {}, 61.04),
        (QWEN3_30B, "0.25.1", {}, 56.88),
        (LLAMA_8B, "0.19.0", {}, 14.99),
        (LLAMA_8B, "0.19.0", {"dtype": "float32"}, 29.98),
        (LLAMA_8B, "0.19.0", {"pipeline_parallel_size": 2}, 7.51),
        (LLAMA_8B, "0.19.0", {"pipeline_parallel_size": 4}, 4.26),
        (LLAMA_8B, "0.19.0", {"tensor_parallel_size": 2}, 7.51),
        (LLAMA_8B, "0.19.0", {"tensor_parallel_size": 4}, 3.77),
        (QWEN3_8B, "0.19.0", {}, 15.27),
        (QWEN3_30B, "0.19.0", {}, 56.88),
        (DEEPSEEK_V2_LITE, "0.19.0", {}, 29.43),
    ],
    ids=lambda value: str(value.get("architectures", value) if isinstance(value, dict) else value),
)
def test_logged_starts(config: dict[str, Any], version: str, choices: dict[str, Any], logged: float) -> None:
    """vLLM's start logs: 0.25.1 on H200, 0.19.0 on H100; two decimals."""
    facts = facts_of(config, (H200 if version == "0.25.1" else H100,), version)
    assert loaded_bytes(facts, choices_of(**choices)) / GIB == pytest.approx(logged, abs=0.0075)


@pytest.mark.parametrize(
    ("size", "split", "whole"),
    [
        (100, 512, 512),
        (3 * MIB, 3 * MIB, 3 * MIB),  # in a segment of 20 MiB with others
        (12 * MIB + MIB // 4, 12 * MIB + MIB // 4, 12 * MIB + MIB // 4),  # 14 MiB: 1.75 left, split; below 20 anyway
        (24 * MIB + MIB // 2, 24 * MIB + MIB // 2, 26 * MIB),  # 1.5 MiB left: split, unless that is forbidden
        (81 * MIB, 82 * MIB, 82 * MIB),  # 1 MiB left is too little to split
        (64 * MIB, 64 * MIB, 64 * MIB),
    ],
)
def test_the_allocator_gives_whole_segments(size: int, split: int, whole: int) -> None:
    assert allocated(size) == split
    assert allocated(size, unsplit=20 * MIB) == whole


def gap(config: dict[str, Any], version: str = "0.19.0", **choices: Any) -> dict[str, int]:
    facts = facts_of(config, (H100,), version)
    return {part.name: part.bytes for part in loading_gap(facts, choices_of(**choices))}


def test_parts_of_qwen_have_names() -> None:
    # 0.25.1: qkv 4608 x 3584 is 31.5 MiB in 32, o 24.5 in 26, gate and up 259 in 260, down 129.5 in 130: 3.5 a layer;
    # two tables of 1039.5 MiB in 1040. Biases (9,216 B) and norms (7,168 B) are multiples of 512 B
    parts = gap(QWEN_7B, "0.25.1")
    assert parts["allocator segments"] == 28 * 7 * MIB // 2 + 2 * MIB // 2
    assert parts["rotary tables"] == 32_768 * 128 * 2
    assert sum(parts.values()) == sum((parts["allocator segments"], parts["rotary tables"], parts["attention scales"]))
    # 0.19: only what leaves at most 1 MiB of its segment, so not o_proj
    assert gap(QWEN_7B)["allocator segments"] == 28 * 2 * MIB + MIB


@pytest.mark.parametrize(
    ("config", "size"),
    [
        (LLAMA_8B | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131_072 * 128 * 2),
        (QWEN_7B | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 65_536 * 128 * 2),
        (
            QWEN_7B | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
            131_072 * 128 * 2,
        ),
        (DEEPSEEK_V2_LITE, 4096 * 40 * 64 * 4),  # float32
    ],
    ids=["llama3", "linear", "yarn", "deepseek"],
)
def test_rotary_tables_have_the_rows_of_their_scaling(config: dict[str, Any], size: int) -> None:
    assert gap(config)["rotary tables"] == size


@pytest.mark.parametrize(("version", "factor"), [("0.31.0", 4), ("0.32.0", 1)])
def test_positions_of_three_axes_have_four_rows_each_until_none_is_pruned(version: str, factor: int) -> None:
    # Qwen3.5: a quarter of 256 dimensions is rotated
    facts = facts_of(QWEN_7B, (H100,), version)
    arch = replace(
        facts.model.architecture, model_type="qwen3_5", caches=(LayerCache("full", (3,), 4, 256, 256),),
        max_position_embeddings=262_144, rope={"mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25},
    )  # fmt: skip
    facts = replace(facts, model=replace(facts.model, architecture=arch))
    assert rotary_tables(facts, choices_of()) == [factor * 262_144 * 64 * 2]


def test_latent_attention_holds_its_absorbed_projections_besides() -> None:
    # 27 layers of 16 heads x (128 + 128) x 512 in 16 bit; half of the heads on each of two ranks
    assert gap(DEEPSEEK_V2_LITE)["absorbed projections"] == 27 * 16 * 256 * 512 * 2
    assert gap(DEEPSEEK_V2_LITE, tensor_parallel_size=2)["absorbed projections"] == 27 * 8 * 256 * 512 * 2


def test_the_cpu_engine_logs_no_such_line() -> None:
    facts = facts_of(SMOLLM2, (HOST,), "0.32.0")
    assert loading_gap(facts, choices_of()) == ()
    assert loaded_bytes(facts, choices_of()) == weight_bytes(facts, choices_of())


def test_each_stage_has_its_own_figure() -> None:
    # four stages of 8 layers: 3.25 GiB each, a table of 0.98 GiB at both ends, rotary tables of 32 MiB on every one
    facts = facts_of(LLAMA_8B, (H100,), "0.19.0")
    choices = choices_of(pipeline_parallel_size=4)
    sizes = [loaded_bytes(facts, choices, stage) / GIB for stage in range(4)]
    assert sizes == pytest.approx([4.26, 3.28, 3.28, 4.26], abs=0.006)
    assert loaded_bytes(facts, choices) == loaded_bytes(facts, choices, 3)
