"""Tensors of the vision towers of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5, with the mergers that end them.

Defaults of absent keys are those of the configuration classes in transformers.
"""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts import faults
from deployc.facts.shapes.mlp import GATED, triple
from deployc.facts.shapes.part import Block, Part, Sizes, linear, norm, within
from deployc.facts.shapes.towers import side
from deployc.types.groups import run


def _patches(sizes: Sizes, hidden: int, patch: int, bias: bool) -> Iterator[Part]:
    """A convolution over `temporal_patch_size` frames and a patch; older files write `in_chans`."""
    channels = sizes.number("in_chans") if "in_chans" in sizes.config else sizes.number("in_channels", 3)
    size = side(sizes, "patch_size", patch)
    yield Part("patch_embed.proj.weight", (hidden, channels, sizes.number("temporal_patch_size", 2), size, size))
    if bias:
        yield Part("patch_embed.proj.bias", (hidden,))


def _attention(hidden: int) -> Iterator[Part]:
    yield from linear("attn.qkv", 3 * hidden, hidden, bias=True)
    yield from linear("attn.proj", hidden, hidden, bias=True)


def _merged(sizes: Sizes, hidden: int) -> int:
    return hidden * sizes.number("spatial_merge_size", 2) ** 2


def _blocks(sizes: Sizes, each: Iterator[Part], depth: int) -> Iterator[Part]:
    count = sizes.number("depth", depth)
    yield from within(f"blocks.{run(range(count))}", each, count)


def qwen2_vl(sizes: Sizes) -> Iterator[Part]:
    """`hidden_size` is that of the language model here, `embed_dim` the tower's."""
    hidden = sizes.number("embed_dim", 1280)
    inner = hidden * _ratio(sizes)
    yield from _patches(sizes, hidden, 14, bias=False)
    yield from _blocks(sizes, _plain_layer(hidden, inner, "mlp.fc"), 32)
    yield from _old_merger(sizes, hidden, sizes.number("hidden_size", 3584), bias=True)


def _plain_layer(hidden: int, inner: int, linears: str) -> Iterator[Part]:
    """Attention, two linears named so, with 1 and 2 behind, and two norms, all with biases."""
    yield from _attention(hidden)
    yield from linear(f"{linears}1", inner, hidden, bias=True)
    yield from linear(f"{linears}2", hidden, inner, bias=True)
    yield from norm("norm1", hidden, bias=True)
    yield from norm("norm2", hidden, bias=True)


def _ratio(sizes: Sizes) -> int:
    """`mlp_ratio`, a whole number that files may write as 4.0."""
    value = sizes.config.get("mlp_ratio", 4)
    if type(value) not in (int, float) or not 1 <= value <= 64 or value != int(value):
        raise faults.bad_dimension("mlp_ratio", f"a whole number is expected, not {value!r:.60}.")
    return int(value)


def qwen2_5_vl(sizes: Sizes) -> Iterator[Part]:
    """Norms without bias, a gated network with one."""
    hidden, inner = sizes.number("hidden_size", 3584), sizes.number("intermediate_size", 3420)

    def layer() -> Iterator[Part]:
        yield from _attention(hidden)
        yield from within("mlp", triple(GATED, inner, hidden, bias=True))
        yield from norm("norm1", hidden)
        yield from norm("norm2", hidden)

    yield from _patches(sizes, hidden, 14, bias=False)
    yield from _blocks(sizes, layer(), 32)
    yield from _old_merger(sizes, hidden, sizes.number("out_hidden_size", 3584), bias=False)


def _old_merger(sizes: Sizes, hidden: int, out: int, bias: bool) -> Iterator[Part]:
    merged = _merged(sizes, hidden)
    yield from norm("merger.ln_q", hidden, bias)
    yield from linear("merger.mlp.0", merged, merged, bias=True)
    yield from linear("merger.mlp.2", out, merged, bias=True)


def qwen3_vl(*, deepstack: bool) -> Block:
    """Learned positions; `deepstack`: layers of `deepstack_visual_indexes` (documented default 8, 16, 24) have mergers
    of their own, whose norm lies behind the merge."""

    def block(sizes: Sizes) -> Iterator[Part]:
        hidden, inner = sizes.number("hidden_size", 1152), sizes.number("intermediate_size", 4304)
        out = sizes.number("out_hidden_size", 3584)

        yield from _patches(sizes, hidden, 16, bias=True)
        yield from linear("pos_embed", sizes.number("num_position_embeddings", 2304), hidden)
        yield from _blocks(sizes, _plain_layer(hidden, inner, "mlp.linear_fc"), 27)
        yield from within("merger", _merger(sizes, hidden, out, hidden))
        count = len(_deep(sizes)) if deepstack else 0
        if count:
            each = _merger(sizes, hidden, out, _merged(sizes, hidden))
            yield from within(f"deepstack_merger_list.{run(range(count))}", each, count)

    return block


def _deep(sizes: Sizes) -> list[object]:
    key = "deepstack_visual_indexes"
    return list(sizes.names(key)) if key in sizes.config else [8, 16, 24]


def _merger(sizes: Sizes, hidden: int, out: int, normed: int) -> Iterator[Part]:
    merged = _merged(sizes, hidden)
    yield from norm("norm", normed, bias=True)
    yield from linear("linear_fc1", merged, merged, bias=True)
    yield from linear("linear_fc2", out, merged, bias=True)
