"""Tensors of attention: queries, keys and values apart or in one matrix, latent (MLA), and Gemma 4's two kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from deployc.facts.shapes.part import Block, If, Part, Sizes, Switch, holds, linear, norm, within

NormKind = Literal["", "head", "layer", "heads", "all"]
"""Of queries and keys: none, one weight over a head's dimension ("layer": with bias), a row a head, one over all."""


def separate(
    *,
    bias: str = "",
    bias_if: If | None = None,
    biased: str = "qkvo",
    out_bias_if: If | None = None,
    norm_kind: NormKind = "",
    norm_if: Switch = True,
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    module: str = "self_attn",
    out: str = "o_proj",
    gated: bool = False,
    sinks: bool = False,
    keyed: bool = True,
) -> Block:
    """q_proj, k_proj, v_proj and the output projection.

    `bias` lists the projections ("qkvo") that always have one; those of `biased` have one where `bias_if` holds.
    `out_bias_if`: where the output projection's has a key of its own.
    `gated`: q_proj also makes an output gate and has twice the rows. `sinks`: one learned logit a head. `keyed`
    false: a layer that reads the keys and values of another.
    """

    def block(sizes: Sizes) -> Iterator[Part]:
        arch = sizes.arch
        hidden, q, kv = arch.hidden_size, arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
        having = bias + (biased if bias_if and holds(bias_if, sizes) else "")
        having += "o" if out_bias_if and holds(out_bias_if, sizes) else ""
        rows = q * 2 if gated else q
        yield from linear(f"{module}.q_proj", rows, hidden, "q" in having)
        if keyed:
            yield from linear(f"{module}.k_proj", kv, hidden, "k" in having)
            yield from linear(f"{module}.v_proj", kv, hidden, "v" in having)
        yield from linear(f"{module}.{out}", hidden, q, "o" in having)
        if norm_kind and holds(norm_if, sizes):
            for name, heads in list(zip(norm_names, (arch.heads, arch.kv_heads), strict=True))[: 1 + keyed]:
                yield from within(module, _head_norm(name, norm_kind, heads, arch.head_dim))
        if sinks:
            yield Part(f"{module}.sinks", (arch.heads,))

    return block


def _head_norm(name: str, kind: NormKind, heads: int, head_dim: int) -> Iterator[Part]:
    if kind == "heads":
        yield Part(f"{name}.weight", (heads, head_dim))
    else:
        yield from norm(name, heads * head_dim if kind == "all" else head_dim, bias=kind == "layer")


def fused(
    name: str,
    out: str,
    *,
    bias: Switch = False,
    out_bias: Switch | None = None,
    transposed: bool = False,
) -> Block:
    """Queries, keys and values in one matrix. `transposed`: [in, out], GPT-2's Conv1D."""

    def block(sizes: Sizes) -> Iterator[Part]:
        arch = sizes.arch
        q, kv = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
        ends = holds(bias if out_bias is None else out_bias, sizes)
        for module, rows, columns, having in (
            (name, q + 2 * kv, arch.hidden_size, holds(bias, sizes)),
            (out, arch.hidden_size, q, ends),
        ):
            yield Part(f"{module}.weight", (columns, rows) if transposed else (rows, columns))
            if having:
                yield Part(f"{module}.bias", (rows,))

    return block


def latent(sizes: Sizes) -> Iterator[Part]:
    """MLA: keys and values from one latent vector of kv_lora_rank, queries too where q_lora_rank is set."""
    heads, hidden = sizes.arch.heads, sizes.hidden
    nope, rope, value = (sizes.number(key) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    rank, bias = sizes.number("kv_lora_rank"), sizes.flag("attention_bias", default=False)
    if sizes.config.get("q_lora_rank") is None:
        yield from linear("self_attn.q_proj", heads * (nope + rope), hidden)
    else:
        q_rank = sizes.number("q_lora_rank")
        yield from linear("self_attn.q_a_proj", q_rank, hidden, bias)
        yield from norm("self_attn.q_a_layernorm", q_rank)
        yield from linear("self_attn.q_b_proj", heads * (nope + rope), q_rank)
    yield from linear("self_attn.kv_a_proj_with_mqa", rank + rope, hidden, bias)
    yield from norm("self_attn.kv_a_layernorm", rank)
    yield from linear("self_attn.kv_b_proj", heads * (nope + value), rank)
    yield from linear("self_attn.o_proj", hidden, heads * value, bias)


def stablelm_norms(sizes: Sizes) -> Iterator[Part]:
    """One layer norm without bias for each head, in a list of modules, where `qk_layernorm` is set."""
    if sizes.flag("qk_layernorm", default=False):
        for name, heads in (("q_layernorm", sizes.arch.heads), ("k_layernorm", sizes.arch.kv_heads)):
            yield Part(f"self_attn.{name}.norms.{{0-{heads - 1}}}.weight", (sizes.arch.head_dim,), heads)


def query_side(*, full: bool) -> Block:
    """Gemma 4: what every layer has; full attention has `global_head_dim` and, where set, fewer KV heads."""

    def block(sizes: Sizes) -> Iterator[Part]:
        head_dim, hidden = _gemma4_head(sizes, full), sizes.hidden
        bias = sizes.flag("attention_bias", default=False)
        yield from linear("self_attn.q_proj", sizes.arch.heads * head_dim, hidden, bias)
        yield from linear("self_attn.o_proj", hidden, sizes.arch.heads * head_dim, bias)
        yield from norm("self_attn.q_norm", head_dim)

    return block


def key_side(*, full: bool) -> Block:
    """Gemma 4: what layers with a cache of their own have; `attention_k_eq_v` drops the values of full attention."""

    def block(sizes: Sizes) -> Iterator[Part]:
        head_dim, hidden = _gemma4_head(sizes, full), sizes.hidden
        bias = sizes.flag("attention_bias", default=False)
        shared = full and sizes.flag("attention_k_eq_v", default=False)
        kv_heads = sizes.number("num_key_value_heads")
        if shared and sizes.config.get("num_global_key_value_heads") is not None:
            kv_heads = sizes.number("num_global_key_value_heads")
        yield from linear("self_attn.k_proj", kv_heads * head_dim, hidden, bias)
        if not shared:
            yield from linear("self_attn.v_proj", kv_heads * head_dim, hidden, bias)
        yield from norm("self_attn.k_norm", head_dim)

    return block


def _gemma4_head(sizes: Sizes, full: bool) -> int:
    """Documented defaults of Gemma4TextConfig: head_dim 256, global_head_dim 512."""
    return sizes.number("global_head_dim", 512) if full else sizes.number("head_dim", 256)


def indexer(sizes: Sizes) -> Iterator[Part]:
    """DeepSeek V3.2's sparse attention: what chooses the tokens that are looked at."""
    heads, dim = sizes.number("index_n_heads"), sizes.number("index_head_dim")
    yield from linear("self_attn.indexer.wq_b", heads * dim, sizes.number("q_lora_rank"))
    yield from linear("self_attn.indexer.wk", dim, sizes.hidden)
    yield from norm("self_attn.indexer.k_norm", dim, bias=True)
    yield from linear("self_attn.indexer.weights_proj", heads, sizes.hidden)
