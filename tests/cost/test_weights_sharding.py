"""What a rank holds of a model: columns, rows, heads, vocabulary, experts, stages. Sums by hand in the comments."""

from __future__ import annotations

from typing import Any

import pytest
from configured import QWEN_05B, QWEN_7B, choices_of, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from weighing import LLAMA_8B, QWEN3_30B, facts_with, held_bytes

from deployc.cost.parallel import stage_layers
from deployc.cost.weights import draft_bytes, stage_bytes, streamed_bytes, weight_bytes

LAYER = "model.layers.{0-1}."


def on(config: dict[str, Any], **choices: Any) -> int:
    return weight_bytes(facts_of(config, version="0.25.1"), choices_of(**choices))


def test_two_ranks_halve_matrices_and_biases_of_columns_and_keep_norms_whole() -> None:
    # Qwen2.5-7B: 28 layers of q, o 3584 x 3584, k, v 512 x 3584, gate, up, down 3584 x 18944, biases 3584 + 2 x 512;
    # two norms a layer and one at the end; two tables of 152,064 x 3584
    linears = 28 * (2 * 3584 * 3584 + 2 * 512 * 3584 + 3 * 3584 * 18944)
    halves = linears + 28 * (3584 + 2 * 512) + 2 * 152_064 * 3584
    assert on(QWEN_7B, tensor_parallel_size=2) == 2 * (halves // 2 + 57 * 3584)


def test_a_row_bias_is_whole_on_every_rank() -> None:
    tensors = {LAYER + "mlp.down_proj.weight": ("BF16", (64, 128)), LAYER + "mlp.down_proj.bias": ("BF16", (64,))}
    assert held_bytes(tensors, tensor_parallel_size=4) == 2 * 2 * (64 * 32 + 64)


@pytest.mark.parametrize(("tp", "rows"), [(1, 8 * 128), (2, 4 * 128), (8, 128), (16, 128), (32, 128)])
def test_kv_heads_are_replicated_where_there_are_more_ranks(tp: int, rows: int) -> None:
    # Llama-3.1-8B has 8 of 128 elements: a rank has at least one
    tensors = {LAYER + "self_attn.k_proj.weight": ("BF16", (1024, 4096))}
    assert held_bytes(tensors, config=LLAMA_8B, tensor_parallel_size=tp) == 2 * 2 * rows * 4096


@pytest.mark.parametrize("module", ["self_attn.qkv_proj", "self_attn.query_key_value", "attention.wqkv"])
def test_joined_projections_split_by_heads(module: str) -> None:
    # 32 + 2 x 8 heads of 128; over 16 ranks: 2 query heads, one key and one value head: 4 x 128 rows
    tensors = {LAYER + module + ".weight": ("BF16", (48 * 128, 4096))}
    assert held_bytes(tensors, config=LLAMA_8B, tensor_parallel_size=16) == 2 * 2 * 4 * 128 * 4096


def test_latent_attention_keeps_what_goes_down_whole_and_splits_what_comes_up() -> None:
    tensors = {
        LAYER + "self_attn.kv_a_proj_with_mqa.weight": ("BF16", (576, 2048)),  # whole
        LAYER + "self_attn.q_a_proj.weight": ("BF16", (1536, 2048)),  # whole
        LAYER + "self_attn.kv_b_proj.weight": ("BF16", (4096, 512)),  # by heads
        LAYER + "self_attn.q_b_proj.weight": ("BF16", (3072, 1536)),  # by heads
    }
    whole, split = (576 + 1536) * 2048, 4096 * 512 + 3072 * 1536
    assert held_bytes(tensors, tensor_parallel_size=4) == 2 * 2 * (whole + split // 4)


def test_mamba_2_replicates_the_groups_that_do_not_divide() -> None:
    # gate and input 2 x 256, 8 time steps, B and C of one group 2 x 32: 584 rows; two ranks: 260, and all of B and C
    keys = {"mamba_n_groups": 1, "mamba_d_state": 32}
    tensors = {LAYER + "mamba.in_proj.weight": ("BF16", (584, 128)), LAYER + "mamba.A_log": ("BF16", (8,))}
    rows = 260 + 64
    assert held_bytes(tensors, tensor_parallel_size=2, keys=keys) == 2 * (2 * rows * 128 + 4 * 4)  # A_log in float32


EXPERTS = {
    LAYER + "mlp.experts.{0-7}.gate_proj.weight": ("BF16", (96, 64)),
    LAYER + "mlp.experts.{0-7}.up_proj.weight": ("BF16", (96, 64)),
    LAYER + "mlp.experts.{0-7}.down_proj.weight": ("BF16", (64, 96)),
}
STACKED = {
    LAYER + "mlp.experts.gate_up_proj": ("BF16", (8, 192, 64)),
    LAYER + "mlp.experts.down_proj": ("BF16", (8, 64, 96)),
}
ONE = 3 * 96 * 64


@pytest.mark.parametrize("tensors", [EXPERTS, STACKED])
@pytest.mark.parametrize(
    ("tp", "dp", "whole", "experts"),
    [(1, 1, False, 8), (4, 1, False, 2), (4, 1, True, 2), (2, 2, False, 2), (2, 2, True, 2), (3, 1, True, 3)],
)  # a quarter of each expert or each fourth: the same; three ranks have 3, 3 and 2 whole ones
def test_experts_are_cut_or_moved(tensors: Any, tp: int, dp: int, whole: bool, experts: int) -> None:
    asked: dict[str, Any] = {"tensor_parallel_size": tp, "data_parallel_size": dp, "expert_parallel": whole}
    assert held_bytes(tensors, config=QWEN3_30B, **asked) == 2 * 2 * experts * ONE


def test_routers_and_shared_gates_are_whole_and_data_parallel_repeats_attention() -> None:
    tensors = {
        LAYER + "mlp.gate.weight": ("BF16", (8, 64)),
        LAYER + "mlp.shared_expert_gate.weight": ("BF16", (1, 64)),
        LAYER + "self_attn.q_proj.weight": ("BF16", (64, 64)),
        LAYER + "mlp.shared_expert.up_proj.weight": ("BF16", (128, 64)),
    }
    alone = held_bytes(tensors, config=QWEN3_30B, tensor_parallel_size=2)
    assert alone == 2 * 2 * (8 * 64 + 64 + 32 * 64 + 64 * 64)
    assert held_bytes(tensors, config=QWEN3_30B, tensor_parallel_size=2, data_parallel_size=4) == alone


def test_layers_for_further_tokens_are_left_out() -> None:
    kept = {"model.layers.47.mlp.gate.weight": ("BF16", (128, 2048))}
    ahead = {
        "mtp.layers.0.mlp.gate.weight": ("BF16", (128, 2048)), "model.layers.48.eh_proj.weight": ("BF16", (64, 64)),
    }  # fmt: skip
    assert held_bytes({**kept, **ahead}, config=QWEN3_30B) == held_bytes(kept, config=QWEN3_30B) == 2 * 128 * 2048
    # one group over the 48 layers of the model and the one that predicts further
    both = {"model.layers.{0-48}.mlp.gate.weight": ("BF16", (128, 2048))}
    assert held_bytes(both, config=QWEN3_30B) == 48 * 2 * 128 * 2048


def test_what_of_a_tower_the_engine_does_not_read_is_left_out() -> None:
    kept = {"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": ("BF16", (64, 32))}
    pooling = {"vision_tower.vision_model.head.mlp.fc1.weight": ("BF16", (64, 32))}
    assert held_bytes({**kept, **pooling}) == held_bytes(kept) == 2 * 64 * 32


def test_encoders_are_split_but_for_their_convolution() -> None:
    tensors = {
        "visual.blocks.{0-1}.attn.qkv.weight": ("BF16", (96, 32)), "visual.blocks.{0-1}.attn.proj.weight":
        ("BF16", (32, 32)), "visual.patch_embed.proj.weight": ("BF16", (32, 3, 2, 14, 14)),
        "visual.merger.mlp.0.weight": ("BF16", (128, 128)), "visual.merger.mlp.2.weight": ("BF16", (64, 128)),
    }  # fmt: skip
    split = 2 * (96 * 32 + 32 * 32) + 128 * 128 + 64 * 128
    assert held_bytes(tensors, tensor_parallel_size=2) == 2 * (split // 2 + 32 * 3 * 2 * 14 * 14)
    # no decode step reads them
    assert streamed_bytes(facts_with(tensors), choices_of()) == 0


LLAMA_LAYER = 2 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 2 * 4096)
LLAMA_TABLE = 2 * 128_256 * 4096


def test_stages_hold_their_layers_and_the_ends_their_tables() -> None:
    facts = facts_of(LLAMA_8B, version="0.25.1")
    first, *middle, last = stage_bytes(facts, choices_of(pipeline_parallel_size=4))
    assert middle == [8 * LLAMA_LAYER] * 2
    assert (first, last) == (8 * LLAMA_LAYER + LLAMA_TABLE, 8 * LLAMA_LAYER + LLAMA_TABLE + 2 * 4096)
    assert weight_bytes(facts, choices_of(pipeline_parallel_size=4)) == last


def test_a_tied_table_lies_on_both_ends() -> None:
    facts = facts_of(QWEN_05B, version="0.25.1")
    parts = stage_bytes(facts, choices_of(pipeline_parallel_size=2))
    assert sum(parts) == weight_bytes(facts, choices_of()) + 2 * 151_936 * 896


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [(32, 4, [8] * 4), (30, 4, [7, 8, 8, 7]), (31, 4, [8, 8, 8, 7]), (61, 8, [7, 7, 8, 8, 8, 8, 8, 7])],
)  # vllm/distributed/utils.py, get_pp_indices: partitions[-i] += 1 for i in 2 … remaining + 1
def test_uneven_layers_go_before_the_last_stage(layers: int, stages: int, counts: list[int]) -> None:
    assert stage_layers(layers, stages) == counts


def test_a_step_reads_all_but_an_untied_input_table() -> None:
    facts = facts_of(QWEN_7B, version="0.25.1")
    assert streamed_bytes(facts, choices_of()) == weight_bytes(facts, choices_of()) - 2 * 152_064 * 3584
    tied = facts_of(QWEN_05B, version="0.25.1")
    assert streamed_bytes(tied, choices_of()) == weight_bytes(tied, choices_of())


def test_a_draft_model_brings_its_tables_unless_it_shares_them() -> None:
    facts = facts_of(QWEN_7B, version="0.25.1")
    assert draft_bytes(facts, choices_of(), shares_embedding=False) == 2 * 7_615_616_512
    assert draft_bytes(facts, choices_of(), shares_embedding=True) == 2 * (7_615_616_512 - 2 * 152_064 * 3584)


CONFIGS = st.sampled_from([QWEN_7B, QWEN_05B, LLAMA_8B, QWEN3_30B])


@given(config=CONFIGS, tp=st.sampled_from([1, 2, 4]), pp=st.integers(1, 5), dp=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_more_ranks_never_need_more_each(config: dict[str, Any], tp: int, pp: int, dp: int) -> None:
    facts = facts_of(config, version="0.25.1")

    def at(**choices: Any) -> int:
        return weight_bytes(facts, choices_of(**choices))

    one = at(tensor_parallel_size=tp, pipeline_parallel_size=pp, data_parallel_size=dp)
    assert at(tensor_parallel_size=2 * tp, pipeline_parallel_size=pp, data_parallel_size=dp) <= one
    assert at(tensor_parallel_size=tp, pipeline_parallel_size=pp, data_parallel_size=dp + 1) <= one
    moved = at(tensor_parallel_size=tp, pipeline_parallel_size=pp, data_parallel_size=dp, expert_parallel=True)
    assert moved <= at(pipeline_parallel_size=pp)
    stages = stage_bytes(facts, choices_of(tensor_parallel_size=tp, pipeline_parallel_size=pp))
    assert sum(stages) >= at(tensor_parallel_size=tp)


@given(ignore=st.lists(st.sampled_from(["lm_head", "mlp", "layers.1", "down_proj", "self_attn.q_proj"]), max_size=4))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("weights", ["fp8", "int8", "int8-weight-only", "int4-gptq", "int4-awq", "int4-rtn"])
def test_what_is_ignored_never_makes_it_smaller(weights: str, ignore: list[str]) -> None:
    facts = facts_of(QWEN_7B, version="0.25.1")
    sizes = [weight_bytes(facts, choices_of(weights=weights, ignore=tuple(ignore[:n]))) for n in range(len(ignore) + 1)]
    assert sizes == sorted(sizes)
    assert sizes[-1] <= 2 * 7_615_616_512
