"""What is chosen where the file says `auto`, and that what the user wrote wins, with its line."""

from __future__ import annotations

import pytest
from configured import A100, GIB, H200, QWEN_7B, card, case_of, facts_of

from deployc.cost.context import share_longer
from deployc.cost.written import as_count
from deployc.types.figure import Figure


def test_the_users_flag_wins_and_is_named() -> None:
    choices = case_of(engine="{version: 0.32.0, args: {max_num_seqs: 5, --max-model-len: 4k, enforce-eager: true}}",
                      workload="{input_tokens: 10, output_tokens: 10, concurrency: 8}").choices  # fmt: skip
    assert (choices.max_num_seqs.value, choices.max_num_seqs.because) == (5, "deploy.yaml:6")
    assert choices.max_model_len.value == 4000
    assert choices.enforce_eager.value is True


def test_the_context_is_lowered_to_what_fits_and_says_so() -> None:
    load = "{input_tokens: 1500, output_tokens: 256, concurrency: 8}"
    small = case_of(facts_of(cards=(card("odd", 17.6 * GIB),)), workload=load).choices.max_model_len
    assert small.because == "DC302"
    assert small.value < 32768
    assert small.value % 16 == 0
    assert "32,768" in small.reason
    large = case_of(workload=load).choices.max_model_len
    assert (large.value, large.because) == (32768, "default")
    four = case_of(workload=load, sla="{full_length_requests: 8}").choices.max_model_len
    assert four.value <= large.value // 2


@pytest.mark.parametrize(
    ("memory", "cards", "tensor", "replicas"),
    [(23.5, 4, 1, 4), (12.0, 4, 2, 2), (7.2, 4, 4, 1), (23.5, 1, 1, 1), (79.0, 8, 1, 8)],
)
def test_the_fewest_cards_an_engine_and_engines_on_the_rest(
    memory: float, cards: int, tensor: int, replicas: int
) -> None:
    facts = facts_of(QWEN_7B, (card("odd", memory * GIB),) * cards)
    load = "{input_tokens: 512, output_tokens: 128, concurrency: 4, max_context: 2048}"
    choices = case_of(facts, hardware=f"{{gpu: x, count: {cards}}}", workload=load).choices
    assert (choices.tensor_parallel_size.value, choices.replicas.value) == (tensor, replicas)


@pytest.mark.parametrize(
    ("capability", "taken"),
    [((7, 0), "none"), ((7, 5), "int8"), ((8, 0), "int8"), ((8, 6), "int8"), ((8, 9), "fp8"), ((9, 0), "fp8"),
     ((10, 0), "fp8"), ((12, 0), "fp8")],
)  # fmt: skip
def test_auto_weights_are_8_bit_only_where_16_do_not_do(capability: tuple[int, int], taken: str) -> None:
    """The type that the card multiplies; a card that multiplies none is left with 16 bit."""

    def chosen(memory: float) -> str:
        facts = facts_of(cards=(card("odd", memory * GIB, capability=capability),))
        return case_of(facts, quantization="{weights: auto}").choices.weights.value

    assert chosen(23.5) == "none"
    assert chosen(14) == taken


@pytest.mark.parametrize("calibration", ["", ", calibration: {data: ./calib.jsonl}"])
def test_auto_weights_never_have_4_bits(calibration: str) -> None:
    """5.5 GiB would hold 4-bit weights of 7B parameters, and nothing else does."""
    facts = facts_of(cards=(card("odd", 6.5 * GIB),))
    case = case_of(facts, quantization=f"{{weights: auto{calibration}}}")
    assert case.choices.weights.value in ("none", "fp8")
    written = case_of(facts, quantization=f"{{weights: int4-gptq{calibration}}}")
    assert written.prediction.memory.weights.value < 6.5 * GIB


def test_auto_weights_start_for_certain_rather_than_perhaps_in_16_bit() -> None:
    # one request of 8,192 tokens is 0.44 GiB; between the card that may hold it beside 16-bit weights and the one that
    # surely does, fp8 is taken
    def left(gib: float, weights: str) -> Figure:
        case = case_of(facts_of(cards=(card("odd", gib * GIB),)), quantization=f"{{weights: {weights}}}")
        return case.prediction.memory.kv_cache

    sizes = [17.5 + step / 8 for step in range(24)]
    between = [size for size in sizes if left(size, "none").low < 0.44 * GIB + 2**20 < left(size, "none").value]
    assert between, "there are cards on which 16-bit weights only may start"
    for size in between:
        case = case_of(facts_of(cards=(card("odd", size * GIB),)), quantization="{weights: auto}")
        assert case.choices.weights.value == "fp8", size


def test_reserved_memory_lowers_the_share_so_that_the_start_check_passes() -> None:
    choice = case_of(hardware="{gpu: rtx-4090, reserved_memory: 4GiB}").choices.gpu_memory_utilization
    assert choice.because == "DC303"
    assert choice.value * 23.5 <= 19.5
    assert case_of().choices.gpu_memory_utilization.because == "default"


def test_a_card_without_bf16_gets_float16() -> None:
    choice = case_of(facts_of(cards=(card("t4", 32 * GIB, capability=(7, 5)),))).choices.dtype
    assert (choice.value, choice.because) == ("float16", "DC252")


def test_sequences_follow_the_load() -> None:
    assert case_of(workload="{input_tokens: 10, output_tokens: 10, concurrency: 33}").choices.max_num_seqs.value == 33
    four = facts_of(cards=(A100,) * 4)
    load = "{input_tokens: 10, output_tokens: 10, concurrency: 33}"
    assert case_of(four, hardware="{gpu: x, count: 4}", workload=load).choices.max_num_seqs.value == 9
    opened = "{input_tokens: 10, output_tokens: 10, request_rate: 3}"
    assert case_of(facts_of(cards=(H200,)), workload=opened).choices.max_num_seqs.value == 256


def test_a_step_holds_a_token_for_each_sequence() -> None:
    choices = case_of(workload="{input_tokens: 10, output_tokens: 10, concurrency: 4000}").choices
    assert choices.max_num_batched_tokens.value >= choices.max_num_seqs.value == 4000


def test_one_adapter_is_merged_several_are_served() -> None:
    from configured import yaml_of
    from handmade import deploy_of

    from deployc.choose.format import adapter_mode

    one, two = "[{name: a, source: ./a}]", "[{name: a, source: ./a}, {name: b, source: ./b}]"
    assert adapter_mode(deploy_of(yaml_of())).value == "none"
    assert adapter_mode(deploy_of(yaml_of(adapters=one))).value == "merge"
    assert adapter_mode(deploy_of(yaml_of(adapters=two))).value == "serve"
    assert adapter_mode(deploy_of(yaml_of(adapters=two.replace("./b", "./b, mode: merge")))).value == "merge"


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (7, 7),
        ("7", 7),
        ("16k", 16_000),
        ("16K", 16_384),
        ("1.5k", 1500),
        ("x", None),
        ("²", None),
        (True, None),
        (1.5, None),
    ],
)
def test_counts_are_read_as_the_engine_reads_them(written: object, count: int | None) -> None:
    assert as_count(written) == count


def test_the_share_refused_follows_the_stated_spread() -> None:
    deploy = case_of(workload="{input_tokens: {mean: 1000, p95: 3000}, output_tokens: 1, concurrency: 1}").deploy
    assert share_longer(deploy, 3001) == pytest.approx(0.05, abs=0.002)
    assert share_longer(deploy, 100_000) < 0.001
    fixed = case_of(workload="{input_tokens: 1000, output_tokens: 24, concurrency: 1}").deploy
    assert (share_longer(fixed, 1024), share_longer(fixed, 1023)) == (0.0, 1.0)


def test_four_cards_that_each_hold_the_model_serve_four_engines_even_where_requests_wait() -> None:
    """32 requests of 12,000 tokens do not fit beside the weights of one card; the engine starts all the same."""
    load = "{input_tokens: 11500, output_tokens: 500, concurrency: 128}"
    case = case_of(facts_of(cards=(card("rtx-4090d"),) * 4), hardware="{gpu: x, count: 4}", workload=load)
    assert (case.choices.tensor_parallel_size.value, case.choices.replicas.value) == (1, 4)
    assert case.prediction.usable_kv_cache_tokens.value < 32 * 12_000
