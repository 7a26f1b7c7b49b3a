"""Rows of decoders with experts; see dense.py for how a row is read."""

from __future__ import annotations

from deployc.facts.shapes.attention import indexer, latent, separate
from deployc.facts.shapes.dense import (
    ATTENTION,
    BIASED,
    HEAD_NORMS,
    MLP_BIAS,
    TWO_LAYER_NORMS,
    TWO_NORMS,
    USE_BIAS,
)
from deployc.facts.shapes.experts import corrected, experts, shared, stacked
from deployc.facts.shapes.family import Family, Prediction, Rows, everywhere, mixture, outside
from deployc.facts.shapes.mlp import NUMBERED, gated, joined
from deployc.facts.shapes.part import Block, If, norms
from deployc.facts.shapes.predicting import deepseek_prediction

MIXTRAL = experts("block_sparse_moe", NUMBERED)
SHARED_EXPERT = shared("mlp.shared_expert", scored=True)
SHARED_EXPERTS = shared("mlp.shared_experts")
GRANITE_EXPERTS = stacked(
    "block_sparse_moe", "input_linear.weight", "output_linear.weight", router="router.layer", inputs_first=False
)
GRANITE_SHARED = joined("shared_mlp", ("input_linear", "output_linear"), key="shared_intermediate_size")
DEEPSEEK_NORMS = norms("enorm", "hnorm", "shared_head.norm")


def _appended(*blocks: Block) -> Prediction:
    """DeepSeek V3's kind: whole layers after the last, each with an embedding and an output layer of its own."""
    return Prediction(
        "num_nextn_predict_layers", "model.layers.{after}", (*blocks, DEEPSEEK_NORMS, deepseek_prediction)
    )


def _deepseek(*attention: Block) -> Family:
    """The router chooses with a correction; whole layers predict further tokens."""
    sparse = (corrected(), SHARED_EXPERTS)
    return Family(
        (*everywhere(*attention, TWO_NORMS), *mixture(gated(), *sparse)),
        prediction=_appended(*attention, TWO_NORMS, *sparse),
    )


SPARSE: Rows = {
    "mixtral": Family(everywhere(separate(), MIXTRAL, TWO_NORMS), strict=True),
    "qwen2_moe": Family(
        (
            *everywhere(separate(bias_if=If("qkv_bias", True), biased="qkv"), TWO_NORMS),
            *mixture(gated(), experts(), SHARED_EXPERT),
        ),
        strict=True,
    ),
    "qwen3_moe": Family(
        (*everywhere(HEAD_NORMS, TWO_NORMS), *mixture(gated(), experts())), strict=True
    ),
    "deepseek_v2": Family(
        (
            *everywhere(latent, TWO_NORMS),
            *mixture(gated(bias=MLP_BIAS), experts(), SHARED_EXPERTS),
        )
    ),
    "deepseek_v3": _deepseek(latent),
    "kimi_k2": _deepseek(latent),
    "deepseek_v32": _deepseek(latent, indexer),
    "glm_moe_dsa": _deepseek(latent, indexer),
    "glm4_moe_lite": _deepseek(latent),
    "glm4_moe": _deepseek(
        separate(bias_if=BIASED, biased="qkv", norm_kind="head", norm_if=If("use_qk_norm"))
    ),
    "dots1": Family((*everywhere(HEAD_NORMS, TWO_NORMS), *mixture(gated(), corrected(), SHARED_EXPERTS))),
    "gpt_oss": Family(
        everywhere(
            separate(bias_if=If("attention_bias", True), sinks=True),
            stacked("mlp", "experts.gate_up_proj", "experts.down_proj", router="router", router_bias=True, bias=True,
                    inputs_first=True),
            TWO_NORMS,
        )
    ),
    "llama4_text": Family(
        (
            *everywhere(ATTENTION, TWO_NORMS),
            *mixture(
                gated("feed_forward"),
                stacked("feed_forward", "experts.gate_up_proj", "experts.down_proj", router="router",
                        inputs_first=True),
                shared("feed_forward.shared_expert"),
            ),
        )
    ),
    "granitemoe": Family(everywhere(ATTENTION, GRANITE_EXPERTS, TWO_NORMS)),
    "granitemoeshared": Family(everywhere(ATTENTION, GRANITE_EXPERTS, GRANITE_SHARED, TWO_NORMS)),
    "olmoe": Family(everywhere(separate(bias_if=BIASED, norm_kind="all"), experts(), TWO_NORMS)),
    "ernie4_5_moe": Family(
        (
            *everywhere(separate(bias_if=USE_BIAS), TWO_NORMS),
            *mixture(
                gated(bias=USE_BIAS),
                experts(correction="moe_statics.e_score_correction_bias", correction_rank=2),
                SHARED_EXPERTS,
            ),
        )
    ),
    "minimax_m2": Family(
        everywhere(
            separate(norm_kind="all", norm_if=If("use_qk_norm", True)),
            experts("block_sparse_moe", NUMBERED, correction="e_score_correction_bias"),
            TWO_NORMS,
        )
    ),
    "phimoe": Family(
        everywhere(ATTENTION, MIXTRAL, TWO_LAYER_NORMS),
        outside=outside(final_bias=True, head_bias=If("lm_head_bias")),
    ),
    "hunyuan_v1_moe": Family(
        everywhere(
            separate(bias_if=BIASED, norm_kind="head", norm_names=("query_layernorm", "key_layernorm")),
            experts(router="gate.wg"),
            shared("mlp.shared_mlp"),
            TWO_NORMS,
        )
    ),
}  # fmt: skip
