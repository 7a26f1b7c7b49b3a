"""What must hold for the cache of any model: of full, sliding, chunked, latent and state layers in any mixture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caches import CACHES, Caches, full, laid_out, latent, windowed
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.types.architecture import LayerCache, State

FREE = settings(deadline=None, max_examples=60)
VERSIONS = st.sampled_from(("0.16.0", "0.19.0", "0.25.1", "0.32.0", "0.33.0"))
HEADS, DIM = st.sampled_from((1, 2, 4, 8, 16)), st.sampled_from((64, 128, 256))
LENGTHS = st.integers(64, 200_000)
ROOM = st.floats(0, 2**37)


@st.composite
def kept(draw: st.DrawFn) -> Caches:
    """One to three kinds of layers, of one head size."""
    heads, dim, counts = draw(HEADS), draw(DIM), draw(st.lists(st.integers(1, 20), min_size=3, max_size=3))
    bounds = [0, counts[0], counts[0] + counts[1], sum(counts)]
    ranges = [range(bounds[n], bounds[n + 1]) for n in range(3)]
    states = (State(draw(st.integers(1, 2**20)) * 16), State(2**18, "float32"))
    some = [
        full(ranges[0], heads, dim) if draw(st.booleans()) else latent(ranges[0], 576),
        windowed(ranges[1], heads, dim, draw(st.sampled_from((128, 1024, 4096)))),
        LayerCache("state", tuple(ranges[2]), states=states, name="gdn"),
    ]
    chosen = draw(st.sets(st.sampled_from((0, 1, 2)), min_size=1))
    return tuple(some[n] for n in sorted(chosen))


@FREE
@given(kept(), VERSIONS, LENGTHS, st.integers(0, 100_000), ROOM)
def test_longer_context_never_gives_more_requests(
    caches: Caches, version: str, length: int, more: int, room: float
) -> None:
    short, long = (laid_out(caches, version, max_model_len=size) for size in (length, length + more))
    assert long.concurrency(room) <= short.concurrency(room)
    assert long.request_bytes(length + more) >= short.request_bytes(length)


@FREE
@given(kept(), VERSIONS, ROOM, st.floats(0, 2**35))
def test_more_memory_never_gives_less(caches: Caches, version: str, room: float, more: float) -> None:
    pages = laid_out(caches, version)
    for count in (pages.blocks, pages.logged_tokens, pages.usable_tokens, pages.concurrency, pages.longest):
        assert count(room + more) >= count(room)


@FREE
@given(kept(), VERSIONS, st.sampled_from((1, 2, 4)))
def test_more_cards_never_take_more_on_each(caches: Caches, version: str, tp: int) -> None:
    # of one token, where blocks have the same size: states make blocks of whole units, which may round up
    few, many = (laid_out(caches, version, tensor_parallel_size=count) for count in (tp, 2 * tp))
    assert many.token_bytes <= few.token_bytes
    if few.block_size == many.block_size:
        assert many.block_bytes <= few.block_bytes


@FREE
@given(kept(), VERSIONS, LENGTHS, ROOM, st.integers(1, 9), st.sampled_from((1, 2, 4)))
def test_what_is_the_longest_is_not_refused(
    caches: Caches, version: str, length: int, room: float, requests: int, stages: int
) -> None:
    pages = laid_out(caches, version, max_model_len=length, pp=stages)
    longest = pages.longest(room, requests)
    if longest:
        assert pages.needed(longest, requests) <= room
        assert pages.needed(longest) <= room
    assert pages.usable_tokens(room) >= min(longest, length)
    if estimated := pages.estimated(room):
        assert pages.needed(estimated) <= room


@FREE
@given(st.sampled_from(sorted(CACHES)), VERSIONS, ROOM)
def test_fp8_never_gives_fewer_blocks_of_attention(model: str, version: str, room: float) -> None:
    wide, narrow = (laid_out(model, version, kv_cache_dtype=dtype) for dtype in ("auto", "fp8"))
    assert narrow.token_bytes <= wide.token_bytes
    if wide.block_size == narrow.block_size:  # beside states, and of latent attention, blocks grow with it
        assert narrow.blocks(room) >= wide.blocks(room)


@FREE
@given(HEADS, DIM, st.integers(16, 100_000), VERSIONS, ROOM)
def test_a_window_that_never_closes_is_full_attention_and_a_block(
    heads: int, dim: int, length: int, version: str, room: float
) -> None:
    def pages(cache: LayerCache) -> Any:
        return laid_out((cache,), version, max_model_len=length)

    whole, window = pages(full(range(10), heads, dim)), pages(windowed(range(10), heads, dim, length))
    assert window.block_bytes == whole.block_bytes
    assert window.request_blocks(length) == whole.request_blocks(length) + 1
    assert window.needed(length) == whole.needed(length) + whole.block_bytes


@FREE
@given(kept(), VERSIONS, st.integers(1, 4))
def test_every_layer_is_in_one_group_and_no_stage_holds_more_than_all(caches: Caches, version: str, pp: int) -> None:
    numbered = tuple(replace(c, layers=tuple(range(n * 20, n * 20 + len(c.layers)))) for n, c in enumerate(caches))
    pages, one = laid_out(numbered, version, pp=pp), laid_out(numbered, version)
    layers = sorted(number for group in pages.groups for number in group.layers)
    assert layers == sorted(number for cache in numbered for number in cache.layers)
    assert pages.block_bytes <= one.block_bytes
