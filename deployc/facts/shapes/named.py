"""Blocks that one family alone has: Falcon's two kinds, OPT's embedding, learned positions, Apertus' activation."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts.shapes.attention import fused
from deployc.facts.shapes.part import Block, If, Part, Sizes, Switch, holds, linear, norm


def positions(name: str, extra: int = 0) -> Block:
    """Learned position embeddings: one row a position, OPT's table has two more."""

    def block(sizes: Sizes) -> Iterator[Part]:
        yield from linear(name, sizes.arch.max_position_embeddings + extra, sizes.hidden)

    return block


def parallel_norm(name: str, parallel: Switch) -> Block:
    """A layer norm that is not there where attention and network read the same input."""

    def block(sizes: Sizes) -> Iterator[Part]:
        if not holds(parallel, sizes):
            yield from norm(name, sizes.hidden, bias=True)

    return block


falcon_attention = fused("self_attention.query_key_value", "self_attention.dense", bias=If("bias"))


def falcon_norms(sizes: Sizes) -> Iterator[Part]:
    """One or two layer norms; the new architecture names its two after what reads them.

    Documented defaults of FalconConfig: new_decoder_architecture false, parallel_attn true, num_ln_in_parallel_attn 2
    in the new architecture.
    """
    new = sizes.flag("new_decoder_architecture", default=False)
    two = sizes.config.get("num_ln_in_parallel_attn")
    if new and two in (None, 2):
        names = ["ln_attn", "ln_mlp"]
    else:
        names = ["input_layernorm"]
        if not new and not sizes.flag("parallel_attn", default=True):
            names.append("post_attention_layernorm")
    for name in names:
        yield from norm(name, sizes.hidden, bias=True)


def opt_outside(sizes: Sizes) -> Iterator[Part]:
    """The embedding may be narrower than the model (`word_embed_proj_dim`), with a projection on either side of it.

    No last norm where the layers end with theirs (`do_layer_norm_before` false) or `_remove_final_layer_norm` is set.
    """
    hidden = sizes.hidden
    width = hidden if sizes.config.get("word_embed_proj_dim") is None else sizes.number("word_embed_proj_dim")
    yield from linear("model.decoder.embed_tokens", sizes.arch.vocab_size, width)
    yield from positions("model.decoder.embed_positions", 2)(sizes)
    before = sizes.flag("do_layer_norm_before", default=True)
    if before and not sizes.flag("_remove_final_layer_norm", default=False):
        yield from norm("model.decoder.final_layer_norm", hidden, bias=True)
    if width != hidden:
        yield from linear("model.decoder.project_in", hidden, width)
        yield from linear("model.decoder.project_out", width, hidden)
    if not sizes.arch.tie_word_embeddings:
        yield from linear("lm_head", sizes.arch.vocab_size, width)


def xielu(_: Sizes) -> Iterator[Part]:
    """Apertus' activation function has learned numbers."""
    for name, shape in (("alpha_n", (1,)), ("alpha_p", (1,)), ("beta", ()), ("eps", ())):
        yield Part(f"mlp.act_fn.{name}", shape)
