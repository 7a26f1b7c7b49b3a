"""The time of one step: sums by hand for a model of one layer, and how figures must move."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from configured import H200, QWEN_7B, choices_of, facts_of
from hypothesis import given
from hypothesis import strategies as st
from weighing import QWEN3_30B

from deployc.cost.speed_basis import speed_basis
from deployc.cost.step import Shape, Step, StepTime, Work, columns, kernel, shape, step_time
from deployc.cost.step.columns import padded
from deployc.cost.step.gpu import gpu_seconds
from deployc.cost.step.host import batch_seconds, launch_seconds
from deployc.cost.weights import Product, products
from deployc.types.speed import Constants, Kernel

PLAIN = Kernel(compute=1.0, stream=1.0, layer=0.0, host_layer=0.0)
NOTHING = Constants(
    kernels={"bf16": PLAIN, "int8": Kernel(0.5, 1.0, 3e-6, 0.0)},
    rows_lost=0, columns_lost=0, wave_lost=0, kv_stream=1, kv_stream_mixed=0.5, attention=1, moved=0, sampler=0,
    layer=0,
    step=0, expert_compute=1, expert_stream=1, expert_rows=0, expert_layer=0, adapter_layer=0, adapter_moved=0,
    reduce_latency=0, reduce_bandwidth=1, host_step=2e-3, host_step_v1=1e-3, host_sequence=1e-5, host_prompt=1e-4,
    host_token=1e-6, host_full=1e-6, host_piecewise=1e-5, host_eager=1e-4, host_experts=0, host_adapter=5e-5,
    travel=0, front=0, spacing=0, spacing_token=0, server=0, server_spacing=0,
)  # fmt: skip
"""An engine that reaches every peak, with a host that can be counted by hand."""
ONE = Shape(
    layers=1, products=(Product(1000, 1000, 1, 2_000_000),), kernel="bf16", experts=None, head=(0, 0), rest=0.0,
    moved=0.0, kv_reads=((math.inf, 100.0),), attention=((math.inf, 50.0),), vocabulary=0, hidden_size=1000,
    tensor_parallel_size=1, adapter_rank=0, eager=False, runner="V2", largest_full_graph=64, largest_graph=128,
    element=2, bandwidth=1e9, peak=1e12, kernel_peak=2e12, link=1e9,
)  # fmt: skip
"""One matrix of a million weights on a card of 1 GB/s and 1 TFLOP/s."""


def gpu(work: Work, of: Shape = ONE, constants: Constants = NOTHING) -> float:
    return gpu_seconds(of, columns(of, work), constants)


def test_decoding_reads_the_weights_and_the_cache() -> None:
    # 2 MB of weights and 500 tokens of 100 bytes at 1 GB/s; one row of a million weights is 2 us of arithmetic
    assert gpu(Work(1, 500)) == pytest.approx(2e-3 + 50e-6, rel=1e-3)


def test_a_long_prompt_is_arithmetic() -> None:
    # 2 x 10,000 rows x a million weights and 50 operations for each token and each of the 5,000 before it on average
    assert gpu(Work(0, 0, 1, 10_000, 10_000 * 5000, 1, 1)) == pytest.approx(20e-3 + 2.5e-3, rel=1e-3)


def test_a_mixed_step_reads_the_cache_at_its_own_pace() -> None:
    alone, mixed = gpu(Work(0, 0, 1, 10, 50, 1, 1)), gpu(Work(1, 500, 1, 9, 40.5, 1, 1))
    assert mixed - alone == pytest.approx(50e-6 / 0.5, rel=0.02)


def test_quantized_products_go_by_their_own_kernel() -> None:
    int8 = replace(ONE, products=(Product(1000, 1000, 1, 1_000_000),), kernel="int8")
    assert gpu(Work(1, 0), int8) == pytest.approx(1e-3 + 3e-6, rel=1e-3)  # half of the bytes, 3 us for activations
    # at half of twice the peak, and those 3 us
    assert gpu(Work(0, 0, 1, 10_000, 0, 1, 1), int8) == pytest.approx(20e-3 + 3e-6, rel=1e-3)


def test_a_wave_of_tiles_that_is_not_full_is_waited_for() -> None:
    lossy = replace(NOTHING, wave_lost=1.0)
    wide = replace(ONE, products=(Product(128 * 132 * 3 // 2, 1000, 1, 2_000_000),))  # one and a half waves
    assert gpu(Work(1, 0), wide, lossy) == pytest.approx(2e-3 * 4 / 3, rel=1e-3)
    assert gpu(Work(1, 0), ONE, lossy) == pytest.approx(2e-3, rel=1e-3)  # less than one: split otherwise


def test_the_host_launches_by_what_graphs_hold() -> None:
    def launch(work: Work, of: Shape = ONE) -> float:
        return launch_seconds(of, columns(of, work), NOTHING)

    assert launch(Work(64, 0)) == 1e-6  # one graph
    assert launch(Work(65, 0)) == launch(Work(10, 0, 1, 100, 0, 1, 1)) == 1e-5  # graphs in pieces
    assert launch(Work(0, 0, 1, 129, 0, 1, 1)) == 0.0  # kernel by kernel, of which bf16 costs nothing here
    assert launch(Work(1, 0), replace(ONE, eager=True)) == 1e-4
    assert launch(Work(0, 0, 1, 129, 0, 1, 1), replace(ONE, adapter_rank=16)) == 5e-5


def test_the_host_prepares_a_batch() -> None:
    work = Work(10, 0, 2, 1000, 0, 1, 2)
    assert batch_seconds(ONE, columns(ONE, work), NOTHING) == pytest.approx(2e-3 + 10e-5 + 2e-4 + 1e-3)
    older = replace(ONE, runner="V1")
    assert batch_seconds(older, columns(older, Work(10, 0)), NOTHING) == pytest.approx(1e-3 + 10e-5)


def test_two_ranks_wait_for_their_sums() -> None:
    two = replace(ONE, tensor_parallel_size=2)
    waiting = replace(NOTHING, reduce_latency=1e-5)
    # two all-reduces, each of one row of 1,000 elements of 2 bytes at 1 GB/s, half of it twice
    assert gpu(Work(1, 0), two, waiting) - gpu(Work(1, 0)) == pytest.approx(2 * (1e-5 + 2e-6))


def test_steps_take_the_longer_of_both_where_two_are_in_flight() -> None:
    time = StepTime(gpu=5e-3, host=3e-3, lead=2e-3)
    assert time.steady == 5e-3
    assert time.alone == 7e-3
    assert StepTime(1e-3, 3e-3, 2e-3).steady == StepTime(1e-3, 3e-3, 2e-3).alone == 3e-3


@pytest.mark.parametrize(
    ("batch", "rows"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (255, 256), (256, 256), (257, 272)]
)
def test_a_graph_pads_its_batch(batch: int, rows: int) -> None:
    assert padded(batch) == rows


def test_products_are_those_that_the_engine_joins() -> None:
    found = {(p.outputs, p.inputs): p for p in products(facts_of(QWEN_7B, (H200,)), choices_of())}
    assert set(found) == {(4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)}
    assert all(p.count == 28 and not p.quantized for p in found.values())
    # the bias of q, k and v is held with them
    assert found[4608, 3584].bytes == 28 * 2 * (4608 * 3584 + 4608)
    assert all(p.quantized for p in products(facts_of(QWEN_7B, (H200,)), choices_of(weights="int8")))


def test_experts_are_read_as_far_as_tokens_are_sent_to_them() -> None:
    facts = facts_of(QWEN3_30B, (H200,))
    of = shape(facts, choices_of(), speed_basis(facts, choices_of()).peaks)
    assert of.experts is not None
    assert (of.experts.count, of.experts.per_token, of.experts.layers) == (128, 8, 48)
    assert of.experts.weights == 3 * 2048 * 768
    assert columns(of, Work(1, 100)).touched == pytest.approx(8)
    assert columns(of, Work(32, 3200)).touched == pytest.approx(128 * (1 - (120 / 128) ** 32))


def test_which_kernel_multiplies() -> None:
    facts = facts_of(QWEN_7B, (H200,))
    assert kernel(facts, choices_of()) == "bf16"
    assert kernel(facts, choices_of(weights="int8")) == "int8"


WORKS = st.builds(
    lambda decodes, mean, tokens: Work(decodes, decodes * mean, int(tokens > 0), tokens, tokens * tokens / 2),
    st.integers(1, 512), st.integers(1, 30_000), st.integers(0, 8192),
)  # fmt: skip


@given(WORKS)
def test_more_work_never_takes_less(work: Work) -> None:
    facts = facts_of(QWEN_7B, (H200,))
    basis = speed_basis(facts, choices_of())
    of = shape(facts, choices_of(), basis.peaks)
    now = step_time(of, columns(of, work), basis.constants)
    longer = work._replace(context=work.context * 2)
    assert step_time(of, columns(of, longer), basis.constants).gpu > now.gpu
    if work.tokens:
        more = work._replace(tokens=work.tokens + 512, area=(work.tokens + 512) ** 2 / 2)
        then = step_time(of, columns(of, more), basis.constants)
        assert then.gpu > now.gpu
        assert then.lead > now.lead


def test_equal_steps_are_computed_once() -> None:
    step = Step(ONE, NOTHING)
    assert step.time(Work(4, 1000)) is step.time(Work(4, 1001))
    assert step.time(Work(4, 1000)) is not step.time(Work(4, 10_000))
