"""The profiling run: its moments by hand, measured peaks of real starts inside the band, and the graphs beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import GIB, QWEN_7B, choices_of, facts_of

from deployc.cost.activations import activations, moments
from deployc.cost.cuda_graphs import capture_sizes, cuda_graphs
from deployc.cost.lora_slots import lora_rank
from deployc.cost.non_torch import non_torch
from deployc.cost.runner import counts_graphs, model_runner
from deployc.facts.calibration import calibration
from deployc.facts.engine import load
from deployc.types.architecture import Tower
from deployc.types.facts import Facts

PEAKS = json.loads((Path(__file__).parent / "data" / "activation_peaks.json").read_text())["rows"]
QWEN3_MOE = QWEN_7B | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 32, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
}  # fmt: skip

DEEPSEEK = QWEN_7B | {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 2048,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400,
}  # fmt: skip
FALCON_H1 = QWEN_7B | {
    "architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "hidden_size": 2048, "num_hidden_layers": 24,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 4096,
    "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4,
    "mamba_d_ssm": 3072, "vocab_size": 65536,
}  # fmt: skip


def of(version: str, config: dict[str, Any] = QWEN_7B) -> Facts:
    """That model on a card, served by that version."""
    engine = load(version)
    return replace(facts_of(config), engine=engine, calibration=calibration(version))


def bytes_at(facts: Facts, **changes: Any) -> dict[str, float]:
    return {moment.name: moment.bytes for moment in moments(facts, choices_of(**changes))}


def test_the_sampler_of_the_first_runner_holds_logits_and_float32_copies() -> None:
    # 1,024 rows x 152,064 x (2 B of bfloat16 logits + 3 x 4 B), 132 rows that the kernel keeps, hidden states of 8,192
    # tokens and twice those of 1,024 rows, 3,584 x 2 B each
    found = bytes_at(of("0.19.0"), max_num_seqs=1024, max_num_batched_tokens=8192)
    assert found["sampler"] == 152_064 * (1024 * 14 + 132 * 4) + (8192 + 2 * 1024) * 3584 * 2


def test_weights_that_we_quantize_are_served_by_the_runner_of_quantized_ones() -> None:
    # vllm/config/vllm.py:558 of 0.23.0: quantized models keep the first runner, whose graphs the budget pays for
    facts = of("0.23.0", QWEN_7B | {"architectures": ["LlamaForCausalLM"], "model_type": "llama"})
    as_stored, ours = choices_of(), choices_of(weights="int8")
    assert (model_runner(facts, as_stored), model_runner(facts, ours)) == ("V2", "V1")
    assert (counts_graphs(facts, as_stored), counts_graphs(facts, ours)) == (False, True)


def test_the_second_runner_keeps_counts_of_every_token_from_the_version_on_that_counts_them() -> None:
    # 4 B and a bit for each of 1,024 x 152,064: 0.60 GiB on every card
    eager = choices_of(max_num_seqs=1024, enforce_eager=True)
    older, newer = (activations(of(version), eager).low for version in ("0.26.0", "0.29.0"))
    assert newer - older == pytest.approx(4.125 * 1024 * 152_064, rel=0.01)


def test_before_the_kernel_that_sorts_nothing_the_sampler_held_three_times_as_much() -> None:
    old, new = (bytes_at(of(version), max_num_seqs=1024)["sampler"] for version in ("0.16.0", "0.17.1"))
    assert 2.3 < old / new < 2.8  # 9 + 1/2 copies against 3 + 1/2


def test_the_widest_point_of_a_dense_layer() -> None:
    # gate and up 2 x 18,944, their product 18,944, four of 3,584: 71,168 elements of 2 B a token
    assert bytes_at(of("0.25.1"), max_num_batched_tokens=8192)["batch"] == 8192 * 71_168 * 2
    assert bytes_at(of("0.25.1"), tensor_parallel_size=2)["batch"] == 2048 * (28_416 + 14_336) * 2


def test_a_cold_compile_cache_holds_one_embedding_table() -> None:
    # 152,064 x 3,584 x 2 B = 1.0151 GiB; measured cold 1.04, warm 0.29; none in eager mode or before torch 2.11
    table = 152_064 * 3584 * 2
    assert bytes_at(of("0.25.1"))["compile"] == table
    assert "compile" not in bytes_at(of("0.25.1"), enforce_eager=True)
    assert activations(of("0.19.0"), choices_of()).value < 0.4 * GIB
    cold = activations(of("0.25.1"), choices_of())
    assert cold.low < 0.29 * GIB < cold.value
    assert cold.value / GIB == pytest.approx(1.04, abs=0.02)


def test_fused_experts_keep_their_workspace() -> None:
    # 8,192 tokens x 8 experts x (max(768, 2,048) + max(1,536, 2,048)) x 2 B = 0.5 GiB, beside sampler and batch
    facts = of("0.19.0", QWEN3_MOE)
    found = bytes_at(facts, max_num_seqs=1024, max_num_batched_tokens=8192)
    assert found["batch"] == 8192 * 4 * 2048 * 2 + 0.5 * GIB
    assert activations(facts, choices_of(max_num_seqs=1024, max_num_batched_tokens=8192)).value / GIB == pytest.approx(
        2.68, abs=0.05
    )


def test_latent_attention_expands_a_chunk_of_context() -> None:
    # 8 requests of 8,192 tokens are 65,536, the most there is, x 16 heads x (128 + 128) x 2 B = 512 MiB; and 4 x 2,048
    # of hidden size for each of 2,048 tokens; of two cards each has half the heads
    facts = of("0.25.1", DEEPSEEK)
    workspace = 2048 * 6 * (2048 + 2816) * 2
    assert bytes_at(facts)["context"] == 512 * 2**20 + 2048 * 4 * 2048 * 2 + workspace
    halves = bytes_at(facts, tensor_parallel_size=2)["context"] - 2048 * 6 * (2048 + 2048) * 2
    assert halves == 256 * 2**20 + 2048 * 4 * 2048 * 2
    # shorter: 8 x 1,024 tokens; measured for 256 sequences and 8,192 tokens: 1.09 GiB
    short = bytes_at(facts, max_model_len=1024)["context"]
    assert short == 8192 * 16 * 256 * 2 + 2048 * 4 * 2048 * 2 + workspace


def test_a_state_layer_holds_what_it_projects_and_convolves() -> None:
    # inner 3,072 = 48 heads x 64: projects 2 x 3,072 + 2 x 256 + 48 = 6,704, convolves 3,072 + 2 x 256 = 3,584 three
    # times, gives 3,072 twice, and four of 2,048: 31,792 elements of 2 B a token; measured 0.52 GiB at 8,192 tokens
    assert bytes_at(of("0.25.1", FALCON_H1), max_num_batched_tokens=8192)["state"] == 8192 * 31_792 * 2


QWEN_VL = Tower("vision", layers=32, hidden_size=1280, intermediate_size=3420, heads=16, patch_size=14)


def seeing(version: str, tower: Tower) -> Facts:
    facts = of(version)
    return replace(facts, model=replace(facts.model, architecture=replace(facts.model.architecture, towers=(tower,))))


def test_images_go_through_the_encoder_as_many_as_the_budget_holds() -> None:
    # an image of 896 x 896 in patches of 14 is 4,096 patches that become 256 tokens: 8,192 tokens are 32 images. Its
    # widest point: 2 x 4,304 + 4 x 1,152 = 13,216 elements a patch; pixels 32 x 3 x 896 x 896 and embeddings stay
    facts = seeing("0.27.1", Tower("vision", 27, 1152, 4304, 16, patch_size=14, image_size=896, tokens=256))
    found = bytes_at(facts, max_num_batched_tokens=8192)
    kept = 32 * (3 * 896 * 896 + 256 * 3584) * 2
    assert found["tower"] == 32 * 4096 * 13_216 * 2 + kept
    assert found["batch"] == bytes_at(of("0.27.1"), max_num_batched_tokens=8192)["batch"] + kept
    assert "tower" not in bytes_at(seeing("0.26.0", facts.model.architecture.towers[0])), "not profiled before 0.27"


def test_where_no_file_says_how_large_an_image_may_be_the_band_holds_the_largest() -> None:
    # 16,384 tokens are 65,536 patches of 2 x 3,420 + 4 x 1,280 = 11,960 elements; known to be small, none of it
    unknown = activations(seeing("0.27.1", QWEN_VL), choices_of())
    known = activations(seeing("0.27.1", replace(QWEN_VL, tokens=256)), choices_of())
    assert unknown.high > 65_536 * 11_960 * 2 > known.high
    assert unknown.low == known.low


def test_a_stage_holds_what_it_runs() -> None:
    choices = choices_of(pipeline_parallel_size=2)
    first, last = ({m.name for m in moments(of("0.25.1"), choices, stage)} for stage in (0, 1))
    assert (first, last) == ({"compile", "batch"}, {"batch", "sampler"})


@pytest.mark.parametrize("row", PEAKS, ids=lambda r: f"{r['model']} {r['version']} TP {r['tensor_parallel_size']}")
def test_measured_peaks(row: dict[str, Any]) -> None:
    shape = {key: row[key] for key in ("vocab_size", "hidden_size", "intermediate_size")}
    if row["num_experts"]:
        shape |= {"experts": row["num_experts"], "experts_per_token": row["num_experts_per_tok"],
                  "moe_intermediate_size": row["moe_intermediate_size"]}  # fmt: skip
    facts = of(row["version"], QWEN3_MOE if row["num_experts"] else QWEN_7B)
    facts = replace(facts, model=replace(facts.model, architecture=replace(facts.model.architecture, **shape)))
    keys = ("max_num_seqs", "max_num_batched_tokens", "tensor_parallel_size", "enforce_eager")
    figure, seen = activations(facts, choices_of(**{key: row[key] for key in keys})), row["activation_peak_gib"]
    assert figure.low / GIB - 0.02 <= seen <= figure.high / GIB + 0.02
    assert abs(figure.value / GIB - seen) < 0.1


def test_capture_sizes_are_the_engines() -> None:
    # max_num_seqs 128: 1, 2, 4, 8, 16 … 128 = 3 + 16; measured on 0.25.1: 19 full sizes, 11 at max_num_seqs 64
    assert capture_sizes(128, 2048) == 19
    assert capture_sizes(64, 2048) == 11
    assert capture_sizes(1, 2048) == 1
    assert capture_sizes(512, 8192) == 3 + 31 + 17


@pytest.mark.parametrize(
    ("version", "seqs", "layers", "gib"),
    [("0.25.1", 128, 28, 0.37), ("0.25.1", 64, 28, 0.21), ("0.25.1", 128, 64, 0.61), ("0.25.1", 128, 32, 0.41),
     ("0.19.0", 1024, 32, 0.91), ("0.19.0", 1024, 40, 1.07), ("0.19.0", 1024, 26, 0.71)],
)  # fmt: skip
def test_measured_graphs(version: str, seqs: int, layers: int, gib: float) -> None:
    figure = cuda_graphs(of(version), choices_of(max_num_seqs=seqs), layers)
    assert figure.low / GIB <= gib <= figure.high / GIB
    assert figure.value / GIB == pytest.approx(gib, rel=0.2)
    assert cuda_graphs(of(version), choices_of(enforce_eager=True), layers).value == 0


def test_the_rank_ladder() -> None:
    assert [lora_rank(r) for r in (1, 2, 16, 17, 512, 513)] == [1, 8, 16, 32, 512, None]


@pytest.mark.parametrize(("link", "low", "high"), [("nvlink", 0.45, 2.2), ("unknown", 0.45, 2.2), ("pcie", 0.35, 1.1)])
def test_buffers_of_cards_over_pcie_are_the_smaller_ones(link: str, low: float, high: float) -> None:
    facts = of("0.25.1")
    facts = replace(facts, devices=(replace(facts.devices[0], interconnect=link),) * 2)
    figure = non_torch(facts, choices_of(tensor_parallel_size=2))
    assert (figure.low / GIB, figure.high / GIB) == pytest.approx((low, high))
    assert non_torch(facts, choices_of()).high < 0.5 * GIB
