"""What fits into the cache: tokens to rely on, what the check at start demands, the longest request; by version."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from caches import CACHES, GIB, laid_out

from deployc.data import profiles
from deployc.facts.catalogue.history import release
from deployc.types.engine_kv import EngineKv
from deployc.types.engine_memory import EngineMemory


def test_one_block_is_no_requests() -> None:
    # 101 blocks of 16 tokens, requests of 800: 50 blocks each. Two fit beside the null block, with 99 one and a part
    pages = laid_out("qwen2.5-7b", max_model_len=800)
    assert pages.usable_tokens(101 * pages.block_bytes) == 1600
    assert pages.usable_tokens(100 * pages.block_bytes) == 800 + 49 * 16
    assert pages.usable_tokens(-1) == pages.usable_tokens(0) == 0


def test_usable_tokens_of_groups_are_whole_requests_and_a_part() -> None:
    # Gemma-2-2B, 0.19: a request of 8,192 takes 512 + 513 = 1,025 blocks; of 1,600 blocks 1,599 are free: one request,
    # and 574 blocks hold one of n tokens: ceil(n/16) + ceil(n/16) + 1 <= 574, n = 286 x 16 = 4,576
    pages = laid_out("gemma-2-2b", "0.19.0", max_num_batched_tokens=8192)
    assert pages.usable_tokens(1600 * pages.block_bytes) == 8192 + 4576


@pytest.mark.parametrize(
    ("version", "blocks"), [("0.18.1", 513), ("0.19.0", 1025), ("0.28.0", 1025), ("0.29.0", 1025 + 1)]
)
def test_what_the_check_at_start_demands(version: str, blocks: int) -> None:
    # Gemma-2-2B: full 512, sliding 513. Up to 0.18 the first group stands for all: that of layer 0, sliding; from 0.29
    # on with the null block
    pages = laid_out("gemma-2-2b", version, max_num_batched_tokens=8192)
    assert pages.needed(8192) == blocks * pages.block_bytes
    assert pages.estimated(blocks * pages.block_bytes) == 8192
    assert pages.estimated(blocks * pages.block_bytes - 1) < 8192


@pytest.mark.parametrize("version", ["0.8.5", "0.16.0", "0.18.1", "0.19.0", "0.29.0", "0.33.0"])
@pytest.mark.parametrize("caches", CACHES)
def test_what_a_request_is_held_in_starts_and_runs_it_and_a_byte_less_does_not(caches: str, version: str) -> None:
    # up to 0.18 the check at the start counts the first group alone: what starts does not run yet
    pages = laid_out(caches, version, max_num_batched_tokens=8192)
    for length in (16, 1000, 8192):
        held = pages.held(length)
        assert pages.holds(held, length) and not pages.holds(held - 1, length)
        assert held >= pages.needed(length)


def test_up_to_0_16_the_check_took_the_layers_of_all_stages() -> None:
    pages = [laid_out("llama-3-8b", version, pp=2).needed(8192) for version in ("0.16.0", "0.17.1")]
    assert pages == [512 * 32 * 65_536, 512 * 16 * 65_536]
    # room for 1,024 blocks of one stage, 512 of both: the longest is what starts, not what the stage would hold
    room = 1024 * 16 * 65_536
    longest = [laid_out("llama-3-8b", version, pp=2).longest(room) for version in ("0.16.0", "0.17.1")]
    assert longest == [512 * 16, 1023 * 16]


def test_the_longest_that_fits_is_whole_blocks_beside_the_null_block() -> None:
    pages = laid_out("qwen2.5-7b")
    assert pages.longest(101 * pages.block_bytes) == 1600
    assert pages.longest(101 * pages.block_bytes, requests=3) == 33 * 16
    assert pages.longest(pages.block_bytes) == pages.longest(0) == 0
    assert pages.needed(528, requests=3) == 100 * pages.block_bytes


def test_a_model_that_keeps_nothing_has_the_null_block_alone() -> None:
    pages = laid_out(())
    assert (pages.blocks(GIB), pages.token_bytes, pages.usable_tokens(GIB)) == (1, 0, 0)


def test_every_model_of_the_table_has_a_layout_in_every_version() -> None:
    for version in ("0.16.0", "0.19.0", "0.25.1", "0.32.0", "0.33.0"):
        for model in CACHES:
            assert laid_out(model, version).block_bytes > 0


@pytest.mark.parametrize(("file", "read"), [("kv_cache.json", EngineKv), ("memory.json", EngineMemory)])
def test_each_behaviour_of_a_version_is_read_names_its_source_and_holds_until_the_next(file: str, read: type) -> None:
    behaviours = json.loads((profiles() / "engines" / file).read_bytes())["behaviours"]
    assert set(behaviours) == {field.name for field in fields(read)} - {"kv"}
    for name, entries in behaviours.items():
        versions = [release(entry["since"]) for entry in entries]
        assert versions == sorted(set(versions)), name
        for entry in entries:
            value = entry["value"]
            assert entry.get("source") or (isinstance(value, dict) and value["source"] and value["basis"]), name
