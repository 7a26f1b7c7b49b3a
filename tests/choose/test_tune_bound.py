"""No simulation is better than the bounds, whatever the model, the card, the load and the limits."""

from __future__ import annotations

import math
from typing import Any

import pytest
from configured import A100, H200, HOST, QWEN_05B, QWEN_7B, card, facts_of, yaml_of
from handmade import deploy_of
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from deployc.choose.decide import draft
from deployc.choose.tune.bound import Bounds, bounds
from deployc.choose.tune.lenient import Engines
from deployc.choose.tune.totals import Runs
from deployc.cost import predict
from deployc.cost.prediction import setting
from deployc.types.facts import GpuFacts
from deployc.types.prediction import Prediction

MIXTRAL_LIKE: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 32000,
    "max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2, "rope_theta": 1e6,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
    "sliding_window": None,
}  # fmt: skip
MISTRAL_WINDOWS: dict[str, Any] = {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 32768, "sliding_window": 1024, "rope_theta": 1e4, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu", "head_dim": 128,
}  # fmt: skip
LATENCIES = ("ttft_p95", "tpot_p95", "e2e_p95")
RATES = ("requests_per_second", "tokens_per_second")
lengths = st.integers(1, 6000)
spreads = st.one_of(st.just(1.0), st.floats(1.0, 3.5))


def _tokens(mean: int, spread: float) -> str:
    return str(mean) if spread == 1 else f"{{mean: {mean}, p95: {math.ceil(mean * spread)}}}"


def both(
    config: dict[str, Any], gpu: GpuFacts, cards: int, load: str, args: dict[str, int], weights: str = "none"
) -> tuple[Bounds, Prediction] | None:
    """Bounds and simulation of one configuration; None where the engine does not start with it."""
    flags = ", ".join(f"{name}: {value}" for name, value in args.items())
    facts = facts_of(config, (gpu,) * cards)
    deploy = deploy_of(
        yaml_of(
            hardware=f"{{gpu: x, count: {cards}}}",
            workload=load,
            quantization=f"{{weights: {weights}}}",
            engine=f"{{version: 0.32.0, parallel: {{tensor: {cards}}}, args: {{{flags}}}}}",
        )
    )
    choices = draft(deploy, facts)
    at = setting(deploy, facts, choices)
    if at.bill.kv_cache.value < at.pages.needed(choices.max_model_len.value):
        return None
    return bounds(at, Runs().of(at), Engines().of(at, ())), predict(deploy, facts, choices)


def hold(found: tuple[Bounds, Prediction]) -> None:
    bound, prediction = found
    speed = prediction.speed
    assert prediction.over_capacity or not bound.over_capacity
    for name in LATENCIES:
        assert getattr(speed, name).value >= getattr(bound, name), name
    for name in RATES:
        assert getattr(speed, name).value <= getattr(bound, name) * (1 + 1e-9), name


@settings(max_examples=150, deadline=None)
@example(  # short prompts and answers of very different lengths, most of them waiting: the end of such a run is long
    config=QWEN_7B, gpu=HOST, cards=1, asked=(1, 1.0, 17, 3.5), load="concurrency: 225", shared=0.0, seqs=None,
    tokens=512, weights="none",
)  # fmt: skip
@given(
    config=st.sampled_from((QWEN_7B, QWEN_05B, MIXTRAL_LIKE, MISTRAL_WINDOWS)),
    gpu=st.sampled_from((H200, A100, card(), HOST)),
    cards=st.sampled_from((1, 1, 2)),
    asked=st.tuples(lengths, spreads, st.integers(1, 900), spreads),
    load=st.one_of(
        st.integers(1, 300).map(lambda many: f"concurrency: {many}"),
        st.floats(-3, 3.5).map(lambda power: f"request_rate: {math.exp(power):.4f}"),
    ),
    shared=st.one_of(st.just(0.0), st.floats(0, 1)),
    seqs=st.one_of(st.none(), st.integers(1, 512)),
    tokens=st.sampled_from((512, 1024, 2048, 8192, 16384)),
    weights=st.sampled_from(("none", "int8")),
)
def test_no_run_is_better_than_its_bounds(
    config: dict[str, Any], gpu: GpuFacts, cards: int, asked: tuple[int, float, int, float], load: str, shared: float,
    seqs: int | None, tokens: int, weights: str,
) -> None:  # fmt: skip
    args = {"max-num-batched-tokens": tokens} | ({"max-num-seqs": min(seqs, tokens)} if seqs else {})
    prompt, prompt_spread, answer, answer_spread = asked
    workload = (
        f"{{input_tokens: {_tokens(prompt, prompt_spread)}, output_tokens: {_tokens(answer, answer_spread)}, {load}, "
        f"shared_prefix_tokens: {int(prompt * shared)}}}"
    )
    found = both(config, gpu, 1 if gpu is HOST else cards, workload, args, weights)
    assume(found is not None)
    assert found is not None
    hold(found)


@pytest.mark.parametrize("seqs", [8, 32, 128])
@pytest.mark.parametrize("tokens", [2048, 8192])
def test_bounds_are_near_enough_to_exclude_something(seqs: int, tokens: int) -> None:
    """Throughput within a third; the time per token within what prompts add to it."""
    load = "{input_tokens: 1500, output_tokens: 256, concurrency: 128}"
    found = both(QWEN_7B, H200, 1, load, {"max-num-seqs": seqs, "max-num-batched-tokens": tokens})
    assert found is not None
    bound, prediction = found
    assert bound.tokens_per_second < prediction.speed.tokens_per_second.value * 1.34
    assert bound.tpot_p95 > prediction.speed.tpot_p95.value / 3.5


def test_an_open_load_above_capacity_is_known_without_a_run() -> None:
    load = "{input_tokens: 1500, output_tokens: 256, request_rate: 60}"
    found = both(QWEN_7B, A100, 1, load, {})
    assert found is not None
    assert found[0].over_capacity
    assert found[1].over_capacity
