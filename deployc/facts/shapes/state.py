"""Tensors of layers that keep a fixed state: Mamba 1 and 2, gated delta rule (linear attention), short convolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deployc.facts.shapes.part import Block, Part, Sizes, Switch, holds, linear, norm


@dataclass(frozen=True, slots=True)
class Mamba2Keys:
    """What a family's config.json calls the sizes of a Mamba 2 layer."""

    heads: str = "mamba_n_heads"
    head_dim: str = "mamba_d_head"
    state: str = "mamba_d_state"
    groups: str = "mamba_n_groups"
    conv: str = "mamba_d_conv"
    conv_bias: str = "mamba_conv_bias"
    bias: str = "mamba_proj_bias"


NEMOTRON_H = Mamba2Keys(
    "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "use_conv_bias", "mamba_proj_bias"
)


def mamba2(
    module: str = "mamba", keys: Mamba2Keys = Mamba2Keys(), *, normed: Switch = True, out_bias: Switch | None = None
) -> Block:
    """in_proj makes gate, convolved inputs and time steps; the convolution runs over inputs, B and C.

    `normed`: a gated norm before out_proj. `out_bias`: where out_proj's bias has a key of its own.
    """

    def block(sizes: Sizes) -> Iterator[Part]:
        heads = sizes.number(keys.heads)
        inner = _inner(sizes, keys, heads)
        convolved = inner + 2 * sizes.number(keys.groups) * sizes.number(keys.state)
        bias = sizes.flag(keys.bias, default=False)
        yield from linear(f"{module}.in_proj", inner + convolved + heads, sizes.hidden, bias)
        yield Part(f"{module}.conv1d.weight", (convolved, 1, sizes.number(keys.conv)))
        if sizes.flag(keys.conv_bias, default=True):
            yield Part(f"{module}.conv1d.bias", (convolved,))
        for name in ("A_log", "D", "dt_bias"):
            yield Part(f"{module}.{name}", (heads,))
        if holds(normed, sizes):
            yield from norm(f"{module}.norm", inner)
        yield from linear(
            f"{module}.out_proj", sizes.hidden, inner, bias if out_bias is None else holds(out_bias, sizes)
        )

    return block


def _inner(sizes: Sizes, keys: Mamba2Keys, heads: int) -> int:
    """Falcon-H1 may name it (`mamba_d_ssm`); a head dimension of "auto" or none is the expanded size over heads."""
    if sizes.config.get("mamba_d_ssm") is not None:
        return sizes.number("mamba_d_ssm")
    if sizes.config.get(keys.head_dim) in (None, "auto"):
        return sizes.number("mamba_expand") * sizes.hidden
    return heads * sizes.number(keys.head_dim)


def mamba1(sizes: Sizes) -> Iterator[Part]:
    """Jamba's: Mamba 1 with norms of the time step, B and C. `mamba_dt_rank` "auto" is a sixteenth of the hidden size.

    Documented defaults of JambaConfig: mamba_expand 2, mamba_d_state 16, mamba_d_conv 4.
    """
    hidden, inner = sizes.hidden, sizes.hidden * sizes.number("mamba_expand", 2)
    state = sizes.number("mamba_d_state", 16)
    automatic = sizes.config.get("mamba_dt_rank", "auto") == "auto"
    rank = -(-hidden // 16) if automatic else sizes.number("mamba_dt_rank")
    bias = sizes.flag("mamba_proj_bias", default=False)
    yield from linear("mamba.in_proj", 2 * inner, hidden, bias)
    yield Part("mamba.conv1d.weight", (inner, 1, sizes.number("mamba_d_conv", 4)))
    if sizes.flag("mamba_conv_bias", default=True):
        yield Part("mamba.conv1d.bias", (inner,))
    yield from linear("mamba.x_proj", rank + 2 * state, inner)
    yield from linear("mamba.dt_proj", inner, rank, bias=True)
    yield Part("mamba.A_log", (inner, state))
    yield Part("mamba.D", (inner,))
    yield from linear("mamba.out_proj", hidden, inner, bias)
    for name, size in (("dt", rank), ("b", state), ("c", state)):
        yield from norm(f"mamba.{name}_layernorm", size)


def delta_rule(*, joined: bool) -> Block:
    """Gated delta rule of Qwen3-Next (`joined`: in_proj_qkvz and in_proj_ba) and Qwen3.5 (four matrices)."""

    def block(sizes: Sizes) -> Iterator[Part]:
        heads, hidden = sizes.number("linear_num_value_heads"), sizes.hidden
        keys = sizes.number("linear_num_key_heads") * sizes.number("linear_key_head_dim")
        values = heads * sizes.number("linear_value_head_dim")
        if joined:
            rows = {"qkvz": 2 * keys + 2 * values, "ba": 2 * heads}
        else:
            rows = {"qkv": 2 * keys + values, "z": values, "b": heads, "a": heads}
        for name, size in rows.items():
            yield from linear(f"linear_attn.in_proj_{name}", size, hidden)
        yield Part("linear_attn.conv1d.weight", (2 * keys + values, 1, sizes.number("linear_conv_kernel_dim")))
        yield Part("linear_attn.A_log", (heads,))
        yield Part("linear_attn.dt_bias", (heads,))
        yield from norm("linear_attn.norm", sizes.number("linear_value_head_dim"))
        yield from linear("linear_attn.out_proj", hidden, values)

    return block


def short_conv(sizes: Sizes) -> Iterator[Part]:
    """LFM2's gated convolution over `conv_L_cache` tokens."""
    bias, hidden = sizes.flag("conv_bias", default=False), sizes.hidden
    yield from linear("conv.in_proj", 3 * hidden, hidden, bias)
    yield Part("conv.conv.weight", (hidden, 1, sizes.number("conv_L_cache")))
    if bias:
        yield Part("conv.conv.bias", (hidden,))
    yield from linear("conv.out_proj", hidden, hidden, bias)
