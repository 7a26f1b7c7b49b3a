"""Zamba2: some layers read one of a few attention blocks that they share, each through adapters of its own."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts.shapes.layers import ATTENTION
from deployc.facts.shapes.part import Part, Sizes, linear, norm, within
from deployc.facts.shapes.state import Mamba2Keys

KEYS = Mamba2Keys("n_mamba_heads", "mamba_headdim", groups="mamba_ngroups", conv_bias="use_conv_bias",
                  bias="add_bias_linear")  # fmt: skip


def joining(sizes: Sizes) -> Iterator[Part]:
    """From the shared block into the layer."""
    yield from linear("linear", sizes.hidden, sizes.hidden)


def shared_blocks(sizes: Sizes) -> Iterator[Part]:
    """`num_mem_blocks` of them (documented default 1), stored with the first layers that read them."""
    readers = ATTENTION(sizes)
    blocks = min(sizes.number("num_mem_blocks", 1), len(readers))
    for block in range(blocks):
        module = f"model.layers.{readers[block]}.shared_transformer"
        yield from within(module, _transformer(sizes))
        for reader in range(block, len(readers), blocks):
            yield from within(module, _adapters(sizes, reader))


def _transformer(sizes: Sizes) -> Iterator[Part]:
    """Attention over the hidden state beside the embedding, twice as wide as the model; a gated network."""
    arch, hidden, wide = sizes.arch, sizes.hidden, 2 * sizes.hidden
    q, kv = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    for name, rows, columns in (("q", q, wide), ("k", kv, wide), ("v", kv, wide), ("o", hidden, q)):
        yield from linear(f"self_attn.{name}_proj", rows, columns)
    bias = sizes.flag("add_bias_linear", default=False)
    yield from linear("feed_forward.gate_up_proj", 2 * sizes.inner, hidden, bias)
    yield from linear("feed_forward.down_proj", hidden, sizes.inner, bias)
    yield from norm("input_layernorm", wide)
    yield from norm("pre_ff_layernorm", hidden)


def _adapters(sizes: Sizes, reader: int) -> Iterator[Part]:
    """Two matrices of `adapter_rank` (documented default 128) beside a projection, for one reading layer."""
    rank, wide = sizes.number("adapter_rank", 128), 2 * sizes.hidden
    if sizes.flag("use_shared_attention_adapter", default=False):
        for name in ("q", "k", "v"):
            yield from linear(f"self_attn.linear_{name}_adapter_list.{reader}.0", rank, wide)
            yield from linear(f"self_attn.linear_{name}_adapter_list.{reader}.1", wide, rank)
    yield from linear(f"feed_forward.gate_up_proj_adapter_list.{reader}.0", rank, sizes.hidden)
    yield from linear(f"feed_forward.gate_up_proj_adapter_list.{reader}.1", 2 * sizes.inner, rank)
