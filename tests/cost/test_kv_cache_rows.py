"""Against the engine's own lines at start: blocks from the memory left, tokens and concurrency from the blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from caches import GIB, laid_out

from deployc.cost.kv_cache import Layout

LOGGED = json.loads((Path(__file__).parent / "data" / "kv_cache.json").read_bytes())["rows"]
ROUNDED = 0.0051 * GIB
"""Half of the last digit of the memory that the engine logs."""


def laid_out_for(row: dict[str, Any]) -> Layout:
    settings = ("max_model_len", "max_num_batched_tokens", "kv_cache_dtype", "dtype")
    return laid_out(
        row["model"],
        row["version"] or "0.19.0",
        pp=row.get("pp", 1),
        tensor_parallel_size=row.get("tp", 1),
        enable_prefix_caching=row["id"] != "log-098",  # off by default in hybrid models of that version
        **{name: row[name] for name in settings if name in row},
    )


@pytest.mark.parametrize("row", [r for r in LOGGED if "blocks" in r], ids=lambda r: str(r["id"]))
def test_tokens_and_concurrency_follow_from_the_blocks(row: dict[str, Any]) -> None:
    pages = laid_out_for(row)
    available = row["blocks"] * pages.block_bytes
    assert pages.blocks(available) == row["blocks"]
    assert pages.logged_tokens(available) == row["tokens"]
    if "concurrency" in row:
        assert abs(pages.concurrency(available) - row["concurrency"]) <= 0.0051


@pytest.mark.parametrize("row", [r for r in LOGGED if "gib" in r], ids=lambda r: str(r["id"]))
def test_tokens_follow_from_the_memory_that_is_left(row: dict[str, Any]) -> None:
    pages, left = laid_out_for(row), row["gib"] * GIB
    fewest, most = pages.logged_tokens(left - ROUNDED), pages.logged_tokens(left + ROUNDED)
    if "pp" in row:  # the line of memory is the first stage's, the blocks are those of the fullest
        assert fewest * 0.98 < row["tokens"] < most
        return
    assert fewest <= row["tokens"] <= most
    if "concurrency" in row:
        assert pages.concurrency(left - ROUNDED) - 0.0051 <= row["concurrency"]
        assert row["concurrency"] <= pages.concurrency(left + ROUNDED) + 0.0051


def test_qwen35_27b_where_the_log_names_no_memory() -> None:
    # 0.19.0, no prefix caching. Attention: 2 x 4 heads x 256 x 2 B = 4,096 B a token. State: (2x16x128 + 48x128) x 3 x
    # 2 B + 48 x 128 x 128 x 4 B = 3,207,168 B, so a block is 16 x ceil(3,207,168 / 65,536) = 784 tokens. 16 full and
    # 48 state layers: 4 groups. A request of 32,768: ceil(32,768/784) + 3 = 45 blocks; 33.04 x 45 = 1,487 blocks.
    row = next(r for r in LOGGED if r["id"] == "log-098")
    pages = laid_out_for(row)
    assert pages.block_size == 784
    available = 1487 * 16 * 784 * 4096
    assert pages.blocks(available) == 1487
    assert round(pages.concurrency(available), 2) == row["concurrency"] == 33.04
    assert pages.logged_tokens(available) == 1487 // 4 * 784 == row["tokens"]


def test_qwen35_27b_in_fp8_over_two_cards() -> None:
    # logged: 9.84 GiB, 619,202 tokens, 2.36 at 262,144 (prefix caching on, 0.20.2 or newer). Attention: 2 x 2 x 256 B =
    # 1,024 B a token; state half of 3,207,168 B; block 16 x ceil(1,603,584 / 16,384) = 1,568 tokens, page 1,605,632 B.
    # A request: ceil(262,144/1,568) + 3 groups x 2 states = 168 + 6 = 174 blocks; 411 / 174 x 262,144 = 619,202.
    for version in ("0.20.2", "0.25.1", "0.31.0"):
        pages = laid_out(
            "qwen3.5-27b", version, tensor_parallel_size=2, kv_cache_dtype="fp8_e5m2", max_model_len=262_144
        )
        assert pages.block_bytes == 16 * 1_605_632
        assert pages.blocks(9.84 * GIB) == 411
        assert round(pages.concurrency(9.84 * GIB), 2) == 2.36
        assert pages.logged_tokens(9.84 * GIB) == 619_202


def test_gemma4_31b_of_a_version_that_counts_blocks_over_groups() -> None:
    # logged: 24.54 GiB, 26,800 tokens (up to 0.20.0). Full: 10 layers, 2 x 4 heads x 512 x 2 B = 8,192 B a token;
    # sliding: 50 layers, 2 x 16 x 256 x 2 B = 16,384 B. One page for all: full layers have 32 tokens a block. 6 groups
    # of 10: 10 x 16 x 16,384 B = 2,621,440 B a block; 10,051 blocks // 6 x 16 = 26,800.
    pages = laid_out("gemma-4-31b", "0.19.0", max_model_len=8192)
    assert sorted(group.spec.tokens for group in pages.groups) == [16] * 5 + [32]
    assert pages.block_bytes == 2_621_440
    assert pages.blocks(24.54 * GIB) == 10_051
    assert pages.logged_tokens(24.54 * GIB) == 26_800


def test_gemma4_31b_of_a_version_that_counts_requests() -> None:
    # logged: 1,563,739 tokens, 5.97 at 262,144 with 4,096 batched tokens, no memory. A request: 262,144/32 = 8,192
    # blocks and 5 x (ceil((1,023 + 4,096)/16) + 1) = 5 x 321: 9,797. Of 58,441 blocks: 5.9652, x 262,144 = 1,563,739
    pages = laid_out("gemma-4-31b", "0.25.1", max_model_len=262_144, max_num_batched_tokens=4096)
    available = 58_441 * pages.block_bytes
    assert round(pages.concurrency(available), 2) == 5.97
    assert pages.logged_tokens(available) == 1_563_739
