"""Memory: exact sums by hand, measured starts inside the band, and what must hold for any configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest
from configured import GIB, H200, HOST, QWEN_05B, QWEN_7B, SMOLLM2, card, case_of, choices_of, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.weights import shard, weight_bytes
from deployc.data import profiles
from deployc.types.choices import Choice
from deployc.types.facts import TensorGroup

STARTS = (profiles() / "calibration" / "rows" / "h200_memory.jsonl").read_text().splitlines()
PLAIN = [row for row in map(json.loads, STARTS) if row["quant"] is None and row["model_runner"] == "V2"]
MEASURED = [row for row in PLAIN if "enable_lora" not in row["engine_args"]]


def bytes_of(config: dict[str, Any], tp: int = 1, weights: str = "none") -> int:
    return weight_bytes(facts_of(config), choices_of(tensor_parallel_size=tp, weights=weights))


def bytes_with(config: dict[str, Any], tensors: Iterable[TensorGroup], **changes: Any) -> int:
    """Of a model whose checkpoint holds these tensors."""
    facts = facts_of(config)
    return weight_bytes(replace(facts, model=replace(facts.model, tensors=tuple(tensors))), choices_of(**changes))


def test_weights_are_the_sum_of_the_shapes() -> None:
    # Qwen2.5-7B has 7,615,616,512 parameters and a vocabulary of 152,064 = 64 x 2,376: no padding, two bytes each
    assert bytes_of(QWEN_7B) == 2 * 7_615_616_512


def test_tied_embeddings_are_counted_once() -> None:
    assert bytes_of(QWEN_05B) == 2 * 494_032_768


def test_int8_leaves_embeddings_norms_and_biases_at_16_bit() -> None:
    # a layer: q 3584x3584, k and v 3584x512, o 3584x3584, gate and up 3584x18944, down 18944x3584: 1 B an element
    linears = 28 * (2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944)
    rows = 28 * (3584 + 512 + 512 + 3584 + 18944 + 18944 + 3584)  # a float32 scale each
    rest = 2 * (7_615_616_512 - linears)
    assert bytes_of(QWEN_7B, weights="int8") == linears + 4 * rows + rest


def test_a_tied_head_that_the_checkpoint_stores_twice_is_loaded_once() -> None:
    model = facts_of(QWEN_05B).model
    twice = (*model.tensors, TensorGroup("lm_head.weight", "BF16", (151936, 896)))
    frequencies = (*model.tensors, TensorGroup("model.layers.{0-23}.self_attn.rotary_emb.inv_freq", "F32", (32,), 24))
    for tensors in (twice, frequencies):
        assert bytes_with(QWEN_05B, tensors) == bytes_of(QWEN_05B)


def test_the_vocabulary_is_padded_to_64_and_split() -> None:
    config = QWEN_05B | {"vocab_size": 151_900}  # padded to 151,936 = 64 x 2,374
    assert bytes_of(config) == bytes_of(QWEN_05B)
    table = TensorGroup("model.embed_tokens.weight", "BF16", (151_900, 896))
    assert shard(table, facts_of(QWEN_05B).model.architecture, 2) == (75_968, 896)


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        (("lm_head",), 0), (("down_proj",), 28), (("layers.1",), 1), (("model.layers.1.mlp.down_proj",), 1),
        (("own_proj",), 0), (("gate",), 0), (("layers.1", "layers.2"), 2), (("mlp",), 28),
    ],
)  # fmt: skip
def test_ignore_names_whole_parts(ignore: tuple[str, ...], left: int) -> None:
    model = facts_of(QWEN_7B).model
    down = next(t for t in model.tensors if "down_proj" in t.pattern)
    alone = bytes_with(QWEN_7B, [down], weights="int8", ignore=ignore)
    one = 18944 * 3584
    assert alone == left * 2 * one + (28 - left) * (one + 4 * 3584)


def test_a_float32_checkpoint_is_served_in_16_bit_and_a_packed_one_as_it_is() -> None:
    model = facts_of(QWEN_7B).model
    wide = tuple(replace(t, dtype="F32") for t in model.tensors)
    assert bytes_with(QWEN_7B, wide) == 2 * 7_615_616_512
    packed = [
        TensorGroup("model.layers.0.mlp.down_proj.weight", "I8", (3584, 18944)),
        TensorGroup("model.layers.0.mlp.down_proj.weight_scale", "BF16", (3584, 1)),
    ]
    assert bytes_with(QWEN_7B, packed, weights="checkpoint") == 3584 * 18944 + 3584 * 4
    assert bytes_with(QWEN_7B, packed, weights="checkpoint", tensor_parallel_size=2) == 3584 * 9472 + 3584 * 4


@pytest.mark.parametrize(
    ("kv", "tp", "kib"),
    [("auto", 1, 56), ("auto", 4, 14), ("auto", 7, 14), ("fp8", 1, 28)],  # one head at least
)
def test_kv_heads_are_replicated_where_tensor_parallel_exceeds_them(kv: str, tp: int, kib: int) -> None:
    case = case_of(facts_of(QWEN_7B))  # 2 x 28 layers x 4 heads x 128 x 2 B
    choices = replace(case.choices, kv_cache_dtype=Choice(kv, "search"), tensor_parallel_size=Choice(tp, "search"))
    assert layout(case.facts, choices).token_bytes == kib * 1024


def test_the_cpu_pool_of_a_gibibyte_holds_the_blocks_that_vllm_logs() -> None:
    # SmolLM2-135M: 2 x 30 layers x 3 heads x 64 x 2 B = 23,040 B a token; measured: 364 blocks of 128, 46,592 tokens
    case = case_of(
        facts_of(SMOLLM2, (HOST,)),
        hardware="{gpu: cpu, host_memory: 8GiB}",
        workload="{input_tokens: 64, output_tokens: 32, concurrency: 2, max_context: 2048}",
    )
    assert case.choices.cpu_kv_cache_bytes == Choice(GIB, "search", case.choices.cpu_kv_cache_bytes.reason)  # type: ignore[union-attr]
    assert case.prediction.kv_cache_tokens.value == 364 * 128 == 46_592
    assert case.prediction.kv_cache_tokens.basis == "exact"


@pytest.mark.parametrize("row", MEASURED, ids=lambda r: str(r["id"]))
def test_measured_starts_lie_in_the_band(row: dict[str, Any]) -> None:
    eager = str("enforce_eager" in row["engine_args"]).lower()
    facts = facts_of(row["model_config"], (replace(H200, memory=H200.memory),) * row["tp"], "0.25.1", seqs=128)
    case = case_of(
        facts,
        hardware=f"{{gpu: h200-sxm, count: {row['tp']}}}",
        workload="{input_tokens: 1500, output_tokens: 256, concurrency: 8}",
        engine=f"{{version: 0.25.1, parallel: {{tensor: {row['tp']}}}, gpu_memory_utilization: "
        f"{row['gpu_memory_utilization']}, args: {{max-num-seqs: {row['max_num_seqs']}, "
        f"max-model-len: {row['max_model_len']}, enforce-eager: {eager}}}}}",
    )
    bill = case.prediction.memory
    assert bill.weights.value / GIB == pytest.approx(row["weights_gib"], rel=0.01, abs=0.11)
    assert bill.kv_cache.low / GIB - 0.11 <= row["available_kv_gib"] <= bill.kv_cache.high / GIB + 0.11
    assert case.prediction.kv_cache_tokens.value == pytest.approx(row["kv_tokens"], rel=0.03, abs=16_000)


@given(tp=st.sampled_from([1, 2, 4]), seqs=st.integers(1, 1024), length=st.integers(16, 32768))
@settings(max_examples=40, deadline=None)
def test_invariants(tp: int, seqs: int, length: int) -> None:
    facts = facts_of(QWEN_7B, (card(memory=47 * GIB),) * 4)
    base = case_of(facts, hardware="{gpu: x, count: 4}").choices

    def at(**changes: Any) -> Any:
        return memory(facts, replace(base, **cast(Any, {k: Choice(v, "search") for k, v in changes.items()})))

    bill, cache = at(tensor_parallel_size=tp, max_num_seqs=seqs, max_model_len=length)
    wider, _ = at(tensor_parallel_size=tp * 2, max_num_seqs=seqs, max_model_len=length)
    _, longer = at(tensor_parallel_size=tp, max_num_seqs=seqs, max_model_len=length * 2)
    _, halved = at(tensor_parallel_size=tp, max_num_seqs=seqs, max_model_len=length, kv_cache_dtype="fp8")
    assert wider.weights.value <= bill.weights.value
    assert longer.concurrency.value <= cache.concurrency.value
    assert halved.tokens.value >= 2 * cache.tokens.value - 16
    assert cache.usable.value <= cache.tokens.value
    spent = bill.weights.value + bill.activations.value + bill.non_torch.value + bill.adapters.value
    assert bill.kv_cache.value + spent == pytest.approx(bill.budget.value)
    assert bill.kv_cache.low <= bill.kv_cache.value <= bill.kv_cache.high
