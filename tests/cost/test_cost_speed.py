"""Speed: how the figures must move. Measured runs stand beside it in tests/measure/."""

from __future__ import annotations

import math

import pytest
from configured import A100, H200, QWEN_7B, card, case_of, facts_of
from weighing import QWEN3_30B

from deployc.cost.request import run_of


def test_one_stream_on_a_4090_is_bound_by_memory_bandwidth() -> None:
    case = case_of()
    stream = case.prediction.single_stream
    assert case.prediction.bound_by == "memory-bandwidth"
    # 14.1 GB are read a token (the input embedding is not) and the KV of some 1,600 tokens: 1.008e12 / 14.2e9 = 71/s
    assert 65 < stream.physical_limit.value < 72
    assert 55 < stream.tokens_per_second.value < 70
    assert stream.tokens_per_second.value < stream.physical_limit.value


def test_the_limit_of_one_stream_counts_the_experts_that_a_token_is_sent_to() -> None:
    # Qwen3-30B-A3B: 8 of 128 experts; some 3.3 billion parameters a token less the embedding, 2 B each, at 4.8e12 B/s:
    # 780 tokens/s and less with KV, where all 30 billion would allow 80
    case = case_of(facts_of(QWEN3_30B, (H200,)), hardware="{gpu: h200-sxm}")
    stream = case.prediction.single_stream
    assert 600 < stream.physical_limit.value < 850
    assert stream.tokens_per_second.value < stream.physical_limit.value


@pytest.mark.parametrize("rate", [0.5, 2.0, 5.0])
def test_an_open_load_below_capacity_is_served_as_it_comes(rate: float) -> None:
    case = case_of(
        facts_of(QWEN_7B, (A100,)), workload=f"{{input_tokens: 1500, output_tokens: 256, request_rate: {rate}}}"
    )
    assert case.prediction.speed.requests_per_second.value == pytest.approx(rate)
    assert not case.prediction.over_capacity


def test_an_open_load_above_capacity_has_no_latency_to_promise() -> None:
    case = case_of(facts_of(QWEN_7B, (A100,)), workload="{input_tokens: 1500, output_tokens: 256, request_rate: 500}")
    speed = case.prediction.speed
    assert case.prediction.over_capacity
    assert speed.requests_per_second.value < 100
    assert speed.ttft_p95.value == speed.ttft_p50.value == speed.e2e_p95.high == math.inf
    assert speed.tpot_p50.high < 10  # what runs at all runs at its usual pace
    assert case.prediction.bound_by == "compute"


def test_replicas_multiply_and_int8_is_faster() -> None:
    one = case_of(workload="{input_tokens: 1500, output_tokens: 256, concurrency: 8}")
    four = case_of(
        facts_of(cards=(card(),) * 4),
        hardware="{gpu: rtx-4090, count: 4}",
        workload="{input_tokens: 1500, output_tokens: 256, concurrency: 32}",
    )
    assert four.choices.replicas.value == 4
    assert four.prediction.speed.tokens_per_second.value == pytest.approx(
        4 * one.prediction.speed.tokens_per_second.value
    )
    int8 = case_of(quantization="{weights: int8}")
    assert (
        int8.prediction.single_stream.tokens_per_second.value
        > 1.4 * one.prediction.single_stream.tokens_per_second.value
    )


def test_a_shared_prefix_saves_prefill() -> None:
    cold = case_of(workload="{input_tokens: 4000, output_tokens: 64, concurrency: 8}").prediction.speed
    warm = case_of(
        workload="{input_tokens: 4000, output_tokens: 64, concurrency: 8, shared_prefix_tokens: 3500}"
    ).prediction.speed
    off = case_of(
        workload="{input_tokens: 4000, output_tokens: 64, concurrency: 8, shared_prefix_tokens: 3500}",
        engine="{version: 0.32.0, args: {enable-prefix-caching: false}}",
    ).prediction.speed
    assert off == cold
    assert warm.ttft_p50.value < cold.ttft_p50.value
    assert warm.requests_per_second.value > cold.requests_per_second.value


@pytest.mark.parametrize(
    ("engine", "load", "bound"),
    [
        ("{version: 0.32.0}", "{input_tokens: 6000, output_tokens: 256, concurrency: 64}", "kv-capacity"),
        ("{version: 0.32.0, args: {max-num-seqs: 4}}", "{input_tokens: 600, output_tokens: 600, concurrency: 64}",
         "memory-bandwidth"),  # what waits does so for max_num_seqs, though there is room
        ("{version: 0.32.0}", "{input_tokens: 6000, output_tokens: 16, concurrency: 4}", "compute"),
    ],
)  # fmt: skip
def test_what_bounds_the_load(engine: str, load: str, bound: str) -> None:
    assert case_of(engine=engine, workload=load).prediction.bound_by == bound


def test_near_capacity_the_latency_may_be_bounded_or_not() -> None:
    """10 requests/s lie inside the band of the capacity, so the band of the latency goes from seconds to no bound."""
    case = case_of(facts_of(QWEN_7B, (A100,)), workload="{input_tokens: 1500, output_tokens: 256, request_rate: 9}")
    prediction = case.prediction
    assert prediction.capacity.low < 9 < prediction.capacity.high
    assert prediction.speed.ttft_p95.low < 5
    assert prediction.speed.ttft_p95.high == math.inf


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 64), (100, 400), (5000, 8192), (10_000, 10_000)])
def test_a_closed_run_is_as_long_as_it_need_be(concurrency: int, requests: int) -> None:
    case = case_of(workload=f"{{input_tokens: 1500, output_tokens: 256, concurrency: {concurrency}}}")
    assert run_of(case.deploy, 1).requests == requests


def test_no_more_tokens_come_out_of_an_open_load_than_it_asks_for() -> None:
    case = case_of(facts_of(QWEN_7B, (A100,)), workload="{input_tokens: 1500, output_tokens: 256, request_rate: 2}")
    speed = case.prediction.speed
    assert speed.tokens_per_second.high == pytest.approx(2 * 256)
    assert speed.requests_per_second.high == pytest.approx(2)
