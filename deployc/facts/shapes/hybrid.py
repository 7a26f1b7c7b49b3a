"""Rows of decoders whose layers differ in kind: state space or linear attention beside attention, Gemma 3n and 4."""

from __future__ import annotations

from deployc.facts.shapes import layers as on
from deployc.facts.shapes import zamba
from deployc.facts.shapes.attention import key_side, query_side, separate
from deployc.facts.shapes.dense import ATTENTION, FOUR_NORMS, MLP_BIAS, TWO_NORMS
from deployc.facts.shapes.experts import experts, gemma4_experts, nemotron_experts
from deployc.facts.shapes.family import Family, Placed, Prediction, Rows, everywhere, mixture, outside
from deployc.facts.shapes.gemma import (
    altup,
    gemma3n_mlp,
    gemma3n_tables,
    gemma4_mlp,
    layer_scalar,
    per_layer_input,
    per_layer_tables,
    wide_mlp,
)
from deployc.facts.shapes.mlp import NUMBERED, gated, plain
from deployc.facts.shapes.part import Block, If, norms
from deployc.facts.shapes.predicting import qwen_prediction
from deployc.facts.shapes.sparse import GRANITE_EXPERTS, GRANITE_SHARED, SHARED_EXPERT
from deployc.facts.shapes.state import NEMOTRON_H, delta_rule, mamba1, mamba2, short_conv

GATED_ATTENTION = separate(bias_if=If("attention_bias"), norm_kind="head", gated=True)
FORWARD_NORMS = norms("input_layernorm", "pre_ff_layernorm")
FINAL_LAYERNORM = outside(final="model.final_layernorm")
FEED_FORWARD = gated("feed_forward", bias=MLP_BIAS)
LFM2_ATTENTION = separate(out="out_proj", norm_kind="head", norm_names=("q_layernorm", "k_layernorm"))
LFM2 = ((short_conv, on.STATE), (LFM2_ATTENTION, on.ATTENTION), *everywhere(norms("operator_norm", "ffn_norm")))
ONLY_MAMBA = on.other_than(on.ATTENTION)
ALONE = on.other_than(on.ATTENTION, on.STATE, on.sparse)
"""Nemotron-H: layers that are a dense network."""
FULL, SLIDING = on.gemma4_full, on.other_than(on.gemma4_full)

GEMMA4 = (
    *everywhere(FOUR_NORMS, layer_scalar, per_layer_input),
    (query_side(full=False), SLIDING),
    (query_side(full=True), FULL),
    (key_side(full=False), on.both(SLIDING, on.ATTENTION)),
    (key_side(full=True), on.both(FULL, on.ATTENTION)),
    (gemma4_mlp, on.other_than(on.wide)),
    (wide_mlp, on.wide),
    (gemma4_experts, on.sparse),
)
GEMMA3N = (
    *everywhere(FOUR_NORMS, altup, per_layer_input, gemma3n_mlp),
    (separate(norm_kind="head"), on.ATTENTION),
    (separate(norm_kind="head", keyed=False), on.READING),
)


QWEN_MOE = mixture(gated(), experts(), SHARED_EXPERT)


def _qwen(*network: Placed, joined: bool, key: str, predicted: tuple[Block, ...]) -> Family:
    """Qwen3-Next and Qwen3.5: gated attention in some layers, the gated delta rule in the others."""
    mixers = ((GATED_ATTENTION, on.ATTENTION), (delta_rule(joined=joined), on.STATE))
    blocks = (GATED_ATTENTION, TWO_NORMS, *predicted)
    # absent the key, vLLM (qwen3_next_mtp.py, qwen3_5_mtp.py) looks for one layer, and released checkpoints have it
    prediction = Prediction(key, "mtp.layers.{i}", blocks, default=1, once=qwen_prediction)
    return Family((*everywhere(TWO_NORMS), *mixers, *network), prediction=prediction)


HYBRID: Rows = {
    "qwen3_next": _qwen(*QWEN_MOE, joined=True, key="num_nextn_predict_layers", predicted=(experts(), SHARED_EXPERT)),
    "qwen3_5_text": _qwen(*everywhere(gated()), joined=False, key="mtp_num_hidden_layers", predicted=(gated(),)),
    "qwen3_5_moe_text": _qwen(
        *QWEN_MOE, joined=False, key="mtp_num_hidden_layers", predicted=(experts(), SHARED_EXPERT)
    ),
    "gemma3n_text": Family(GEMMA3N, outside=outside(more=gemma3n_tables)),
    "gemma4_text": Family(GEMMA4, outside=outside(more=per_layer_tables)),
    "granitemoehybrid": Family(
        (
            *everywhere(GRANITE_SHARED, TWO_NORMS),
            (GRANITE_EXPERTS, on.sparse),
            (ATTENTION, on.ATTENTION),
            (mamba2(), on.STATE),
        )
    ),
    "bamba": Family(
        (*everywhere(FEED_FORWARD, FORWARD_NORMS), (ATTENTION, on.ATTENTION), (mamba2(), on.STATE)),
        outside=FINAL_LAYERNORM,
    ),
    "falcon_h1": Family(
        everywhere(
            ATTENTION,
            mamba2(normed=If("mamba_rms_norm"), out_bias=If("projectors_bias")),
            FEED_FORWARD,
            FORWARD_NORMS,
        ),
        outside=FINAL_LAYERNORM,
    ),
    "jamba": Family(
        (
            *everywhere(FORWARD_NORMS),
            (separate(), on.ATTENTION),
            (mamba1, on.STATE),
            *mixture(gated("feed_forward"), experts("feed_forward", router="router")),
        ),
        outside=FINAL_LAYERNORM,
    ),
    "nemotron_h": Family(
        (
            *everywhere(norms("norm")),
            (separate(module="mixer", bias_if=If("attention_bias")), on.ATTENTION),
            (mamba2("mixer", NEMOTRON_H), on.STATE),
            (
                plain("mixer.up_proj", "mixer.down_proj", bias=MLP_BIAS),
                ALONE,
            ),
            (nemotron_experts, on.sparse),
        ),
        module="backbone.layers",
        outside=outside("backbone.embeddings", "backbone.norm_f"),
    ),
    "zamba2": Family(
        (
            (norms("input_layernorm"), ONLY_MAMBA),
            (mamba2("mamba", zamba.KEYS), ONLY_MAMBA),
            (norms("mamba_decoder.input_layernorm"), on.ATTENTION),
            (mamba2("mamba_decoder.mamba", zamba.KEYS), on.ATTENTION),
            (zamba.joining, on.ATTENTION),
        ),
        outside=outside(final="model.final_layernorm", more=zamba.shared_blocks),
    ),
    "lfm2": Family(
        (*LFM2, *everywhere(gated("feed_forward", NUMBERED))),
        outside=outside(final="model.embedding_norm"),
    ),
    "lfm2_moe": Family(
        (
            *LFM2,
            *mixture(
                gated("feed_forward", NUMBERED),
                experts("feed_forward", NUMBERED, correction="expert_bias"),
            ),
        ),
        outside=outside(final="model.embedding_norm"),
    ),
}
