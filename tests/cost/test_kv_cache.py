"""The layout of the cache for each kind of attention, with sums by hand; and what versions of the engine changed."""

from __future__ import annotations

from typing import Any

import pytest
from caches import GIB, alternating, every, full, gdn, laid_out, latent, windowed
from configured import A100, HOST, card

from deployc.types.architecture import LayerCache, State

B200 = card("b200", 178 * GIB, 8e12, (10, 0), 2.25e15, "nvlink")


@pytest.mark.parametrize(
    ("model", "tp", "kib"),
    [
        ("llama-2-7b", 1, 512),  # MHA: 2 x 32 layers x 32 heads x 128 x 2 B
        ("qwen2.5-7b", 1, 56),  # GQA: 2 x 28 x 4 x 128 x 2 B
        ("qwen2.5-7b", 4, 14),  # one head a card
        ("qwen2.5-7b", 8, 14),  # … and no less: two cards hold the same head
    ],
)
def test_full_attention_is_two_vectors_a_head(model: str, tp: int, kib: int) -> None:
    pages = laid_out(model, tensor_parallel_size=tp)
    assert pages.token_bytes == kib * 1024
    assert pages.block_bytes == 16 * kib * 1024
    assert pages.uniform


def test_multi_query_attention_keeps_its_one_head_on_every_card() -> None:
    # 2 x 32 layers x 1 head x 64 x 2 B = 8,192 B a token
    for tp in (1, 2, 8):
        assert laid_out((full(range(32), 1, 64),), tensor_parallel_size=tp).token_bytes == 8192


def test_values_of_another_size_than_keys() -> None:
    # full: 10 layers x 4 heads x (192 + 128) x 2 B = 25,600 B a token in every version; a window of such layers had
    # 2 x 192 up to 0.19: 10 x 4 x 384 x 2 B = 30,720 B
    assert laid_out((full(range(10), 4, 192, 128),), "0.19.0").block_bytes == 16 * 25_600
    narrow = LayerCache("sliding", tuple(range(10)), 4, 192, 128, 1024)
    assert laid_out((narrow,), "0.19.0").block_bytes == 16 * 30_720
    assert laid_out((narrow,), "0.25.1").block_bytes == 16 * 25_600


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("fp8", 28 * 4 * 256), ("fp8_e5m2", 28 * 4 * 256),  # 2 x 128 x 1 B a head; scales a tensor lie with the weights
        ("fp8_per_token_head", 28 * 4 * (256 + 8)),  # and a float32 for K and one for V
        ("nvfp4", 28 * 4 * 2 * (64 + 8)),  # half a byte, and a byte for 16
    ],
)  # fmt: skip
def test_quantized_keys_and_values(dtype: str, size: int) -> None:
    assert laid_out("qwen2.5-7b", kv_cache_dtype=dtype).token_bytes == size


@pytest.mark.parametrize(
    ("quantization", "kib"),
    [
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 28),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, 56),
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, 28),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": None}, 56),
        ({"quant_method": "awq"}, 56),
    ],
)
def test_auto_follows_what_the_checkpoint_declares(quantization: dict[str, Any], kib: int) -> None:
    config = {"quantization_config": quantization}
    assert laid_out("qwen2.5-7b", config=config, weights="checkpoint").token_bytes == kib * 1024
    assert laid_out("qwen2.5-7b", config=config, weights="int8").token_bytes == 56 * 1024


def test_latent_attention_is_one_vector_that_no_card_splits() -> None:
    # DeepSeek-V2-Lite: 27 layers x (512 + 64) x 2 B = 31,104 B a token
    for tp in (1, 4):
        assert laid_out("deepseek-v2-lite", tensor_parallel_size=tp).token_bytes == 31_104
    assert laid_out("deepseek-v2-lite", kv_cache_dtype="fp8").token_bytes == 15_552


@pytest.mark.parametrize(
    ("version", "gpu", "dtype", "tokens"),
    [
        ("0.16.0", card("h100", capability=(9, 0)), "auto", 64),  # FlashMLA
        ("0.19.0", card("h100", capability=(9, 0)), "auto", 16),  # FlashAttention MLA
        ("0.19.0", card("h100", capability=(9, 0)), "fp8", 64),  # FlashMLA
        ("0.16.0", B200, "auto", 64), ("0.33.0", B200, "auto", 32),  # FlashInfer MLA
        ("0.19.0", A100, "auto", 16), ("0.33.0", HOST, "auto", 16),  # Triton MLA; the CPU kernel
    ],
)  # fmt: skip
def test_a_block_of_latent_attention_depends_on_the_backend(version: str, gpu: Any, dtype: str, tokens: int) -> None:
    assert laid_out("deepseek-v2-lite", version, card=gpu, kv_cache_dtype=dtype).block_size == tokens


def test_the_indexer_of_sparse_latent_attention_stands_beside_it_in_one_group() -> None:
    # DeepSeek V3.2: 61 x (576 x 2 + 132) B = 78,324 B a token, blocks of 64; fp8 has 656 B in place of 1,152 on
    # Hopper, 576 on Blackwell
    pages = laid_out("deepseek-v3.2")
    assert (len(pages.groups), pages.block_size, pages.token_bytes) == (1, 64, 61 * (1152 + 132))
    assert pages.block_bytes == 64 * 78_324
    assert laid_out("deepseek-v3.2", kv_cache_dtype="fp8").token_bytes == 61 * (656 + 132)
    assert laid_out("deepseek-v3.2", kv_cache_dtype="fp8", card=B200).token_bytes == 61 * (576 + 132)


def test_a_window_in_every_layer_bounds_what_a_request_holds() -> None:
    # 32 layers x 8 heads x 128, window 4,096, 2,048 tokens a step, 0.25.1: ceil((4,095 + 2,048)/16) + 1 = 385 blocks
    # of 2 MiB, whatever the length; while it is answered ceil(4,096/16) + 1 = 257
    pages = laid_out((windowed(range(32), 8, 128, 4096),), "0.25.1", max_model_len=32_768)
    assert pages.request_blocks(32_768) == pages.request_blocks(1_000_000) == 385
    assert pages.request_bytes(32_768) == 257 * 2 * 1024**2
    assert pages.request_blocks(1000) == 63 + 1
    assert pages.token_bytes == 0
    assert pages.concurrency(770 * pages.block_bytes) == 2.0
    assert pages.read_bytes(32_768) == 4096 * 131_072


def test_windows_keep_what_two_batches_in_flight_need_since_0_26() -> None:
    # (4,095 + 2 x 2,048)/16 = 511.9, so 513 blocks; one batch on the CPU engine, whose blocks have 128 tokens:
    # ceil(6,143/128) + 1 = 49. Three pipeline stages and the V2 runner: 4 batches, ceil((4,095 + 8,192)/16) + 1 = 769
    caches = (windowed(range(32), 8, 128, 4096),)
    assert laid_out(caches, "0.26.0", max_model_len=32_768).request_blocks(32_768) == 513
    assert laid_out(caches, "0.32.0", max_model_len=32_768, card=HOST).request_blocks(32_768) == 49
    assert laid_out(caches, "0.32.0", max_model_len=32_768, pp=3).request_blocks(32_768) == 769


def test_full_layers_and_windows_share_one_pool_of_blocks() -> None:
    # Gemma-3-12B: 8 full, 40 sliding (1,024) of 2 x 8 x 256 x 2 B x 16 = 131,072 B: 6 groups of 8, 1 MiB a block.
    # 0.19, 8,192 tokens and 8,192 a step: 512 + 5 x 513 = 3,077 blocks. One more token: 1 MiB / 16
    pages = laid_out("gemma-3-12b", "0.19.0", max_num_batched_tokens=8192)
    assert len(pages.groups) == 6
    assert pages.block_bytes == 1024**2
    assert pages.request_blocks(8192) == 3077
    assert pages.token_bytes == 65_536
    assert not pages.uniform
    assert pages.request_bytes(8192) == (512 + 5 * 65) * 1024**2  # being answered: 64 blocks and one of each window
    # 8 layers x 8,192 B a token of all, 40 x 8,192 B of 1,024 tokens
    assert pages.read_bytes(8192) == 8192 * 65_536 + 1024 * 327_680


def test_groups_have_as_many_layers_as_the_rarest_kind() -> None:
    pages = laid_out(alternating(33, 4, 8, 128, 1024))  # 8 full, 25 sliding: the last groups have one layer too few
    assert [len(group.layers) for group in pages.groups] == [7, 6, 6, 6, 8]
    assert pages.block_bytes == 8 * 65_536


@pytest.mark.parametrize(("version", "groups", "layers"), [("0.17.1", 3, 10), ("0.18.1", 2, 14)])
def test_kinds_that_hardly_differ_in_number_take_a_group_each(version: str, groups: int, layers: int) -> None:
    # 10 full and 14 sliding layers: 14 is above 1.25 x 10 and below 1.5 x 10
    pages = laid_out((full(range(10), 8, 128), windowed(range(10, 24), 8, 128, 1024)), version)
    assert len(pages.groups) == groups
    assert pages.block_bytes == layers * 16 * 4096


def test_pages_of_two_sizes_become_one_by_more_tokens_a_block() -> None:
    # full: 2 x 4 x 512 x 2 B x 16 = 131,072 B; sliding: 2 x 16 x 256 x 2 B x 16 = 262,144 B: full blocks of 32 tokens
    pages = laid_out("gemma-4-31b")
    assert {(g.spec.kind, g.spec.tokens, g.spec.bytes) for g in pages.groups} == {
        ("full", 32, 262_144),
        ("sliding", 16, 262_144),
    }
    assert pages.refusal == ""


def test_pages_that_do_not_divide_are_padded_or_refused() -> None:
    # 3 heads beside 2: 24,576 and 16,384 B
    caches = (full(range(4), 3, 128), windowed(range(4, 8), 2, 128, 1024))
    assert "does not divide" in laid_out(caches, "0.23.0").refusal
    pages = laid_out(caches, "0.29.0")
    assert (pages.refusal, pages.block_bytes) == ("", 4 * 24_576)


def test_full_layers_of_several_sizes_stand_in_one_group() -> None:
    # 16 x (4 x 2 x 8 x 128 x 2 B + 4 x 2 x 4 x 64 x 2 B) = 16 x (16,384 + 4,096) B
    pages = laid_out((full(range(4), 8, 128), full(range(4, 8), 4, 64)))
    assert (len(pages.groups), pages.block_bytes, pages.token_bytes) == (1, 16 * 20_480, 20_480)


def test_chunks_beside_full_layers_keep_all_tokens() -> None:
    # Llama 4: the hybrid manager is off by default, so 48 layers x 2 x 8 x 128 x 2 B = 196,608 B a token in one group
    chosen, others = every(48, 4)
    pages = laid_out((full(chosen, 8, 128), windowed(others, 8, 128, 8192, "chunked")))
    assert (len(pages.groups), pages.token_bytes) == (1, 196_608)
    # alone they keep a chunk and what is in flight: ceil((8,192 + 2,048)/16) = 640 blocks
    alone = laid_out((windowed(range(48), 8, 128, 8192, "chunked"),), "0.25.1", max_model_len=131_072)
    assert alone.request_blocks(131_072) == 640


@pytest.mark.parametrize(
    ("version", "caching", "states"), [("0.19.0", False, 1), ("0.19.0", True, 2), ("0.32.0", True, 2)]
)
def test_states_take_a_page_of_attention_each(version: str, caching: bool, states: int) -> None:
    # Qwen3.5-27B (see test_kv_cache_rows): blocks of 784 tokens, pages of 784 x 4,096 B, 16 layers a group
    pages = laid_out("qwen3.5-27b", version, enable_prefix_caching=caching, max_model_len=32_768)
    assert len(pages.groups) == 4
    assert pages.block_bytes == 16 * 784 * 4096
    assert pages.request_blocks(32_768) == 42 + 3 * states
    assert pages.token_bytes == 16 * 4096


def test_a_gated_delta_net_that_exports_checkpoints_needs_a_third_state_and_blocks_of_64() -> None:
    # 0.33 on Hopper: a multiple of 64 with a page of 3,207,168 B at least: 832 tokens. ceil(32,768/832) + 3 x 3
    pages = laid_out("qwen3.5-27b", "0.33.0", max_model_len=32_768)
    assert pages.block_bytes == 16 * 832 * 4096
    assert pages.request_blocks(32_768) == 40 + 9
    assert laid_out("qwen3.5-27b", "0.33.0", card=A100).block_size == 784  # not where FlashInfer has no kernel


MAMBA2 = LayerCache("state", tuple(range(4, 40)), states=(State(3 * 8448), State(128 * 64 * 128)), name="mamba2")
GRANITE = (full(range(4), 8, 128), MAMBA2)


def test_mamba2_keeps_a_state_for_each_block_where_the_engine_caches_prefixes_so() -> None:
    # state (25,344 + 1,048,576) x 2 B = 2,147,840 B; attention 4,096 B a token: 525 tokens, in chunks of 256: 768
    name, config = "GraniteMoeHybridForCausalLM", {"mamba_chunk_size": 256}
    pages = laid_out(GRANITE, "0.25.1", name=name, config=config, max_model_len=32_768)
    assert pages.block_size == 768
    assert len(pages.groups) == 10
    assert pages.request_blocks(32_768) == 10 * 43  # ceil(32,768 / 768)
    assert pages.token_bytes == 10 * 4 * 4096
    # 0.28: two states, in 0.32 a third; blocks of 16 x ceil(2,147,840 / 65,536) = 528 tokens
    later = laid_out(GRANITE, "0.28.0", name=name, config=config, max_model_len=32_768)
    assert (later.block_size, later.request_blocks(32_768)) == (528, 63 + 9 * 2)
    assert laid_out(GRANITE, "0.32.0", name=name, config=config).request_blocks(32_768) == 63 + 9 * 3
    off = laid_out(GRANITE, "0.25.1", name=name, config=config, enable_prefix_caching=False)
    assert off.request_blocks(32_768) == 63 + 9


def test_states_are_split_over_cards_and_groups_of_them_are_not() -> None:
    # a short convolution of 2,048 channels x 2, 16 bit: 8,192 B; alone, without prefix caching: a block a request
    conv = LayerCache("state", tuple(range(10)), states=(State(4096),), name="short_conv")
    for tp in (1, 2):
        pages = laid_out((conv,), enable_prefix_caching=False, tensor_parallel_size=tp)
        assert pages.block_bytes == 10 * 8192 // tp
        assert (pages.token_bytes, pages.concurrency(5 * pages.block_bytes)) == (0, 5.0)


def test_latent_attention_beside_states_takes_larger_units() -> None:
    # 576 x 2 B a token, state 3,207,168 B: 2,784 tokens; in units of 64 (0.19) 2,816, of 16 (0.25.1) 2,784, of 128
    # (0.28) 2,816
    caches = (latent(range(4), 576), gdn(list(range(4, 16))))
    sizes = [laid_out(caches, version, card=A100).block_size for version in ("0.19.0", "0.25.1", "0.28.0")]
    assert sizes == [2816, 2784, 2816]


def test_a_layer_that_reads_another_ones_cache_takes_nothing() -> None:
    # Gemma 3n: 35 layers of which 15 share: 4 full and 16 sliding (512) keep; groups of 4, 4 x 2 x 2 x 256 x 2 B x 16
    chosen, others = every(20, 5)
    pages = laid_out((full(chosen, 2, 256), windowed(others, 2, 256, 512)))
    assert (len(pages.groups), pages.block_bytes) == (5, 4 * 32_768)


def test_the_fullest_pipeline_stage_rules() -> None:
    # 30 layers over 4 stages: 7, 8, 8, 7 (get_pp_indices); a block of 8 layers of 2 x 8 x 128 x 2 B x 16
    assert laid_out((full(range(30), 8, 128),), pp=4).block_bytes == 8 * 65_536
    # a group of full layers and one of windows over two stages: 13 of 26 each
    assert laid_out("gemma-2-2b", pp=2).block_bytes == 7 * 65_536


def test_the_cpu_engine_has_blocks_of_128_tokens() -> None:
    # measured: SmolLM2-135M, 1 GiB: 364 blocks, 46,592 tokens
    pages = laid_out((full(range(30), 3, 64),), card=HOST, max_model_len=8192)
    assert (pages.blocks(GIB), pages.logged_tokens(GIB)) == (364, 46_592)
