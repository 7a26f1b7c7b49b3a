"""Rows of dense decoders.

A family is added by a row: which attention, which network, which norms, and what lies around the layers where that is
not Llama's. The names are those of released checkpoints, which save_pretrained of transformers 5 writes too;
tests/facts/test_shapes_families.py compares every row with its class there. A key's default is its configuration
class's.
"""

from __future__ import annotations

from deployc.facts.shapes.attention import fused, separate, stablelm_norms
from deployc.facts.shapes.family import Family, Rows, everywhere, outside
from deployc.facts.shapes.mlp import NUMBERED, gated, joined, plain
from deployc.facts.shapes.named import falcon_attention, falcon_norms, opt_outside, parallel_norm, positions, xielu
from deployc.facts.shapes.part import If, norms

TWO_NORMS = norms("input_layernorm", "post_attention_layernorm")
TWO_LAYER_NORMS = norms("input_layernorm", "post_attention_layernorm", bias=True)
FOUR_NORMS = norms(
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
)
AFTER_NORMS = norms("post_attention_layernorm", "post_feedforward_layernorm")
GLM4_NORMS = norms("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm")

BIASED = If("attention_bias")
MLP_BIAS = If("mlp_bias")
USE_BIAS = If("use_bias")
ATTENTION = separate(bias_if=BIASED)
HEAD_NORMS = separate(bias_if=BIASED, norm_kind="head")

LLAMA = everywhere(ATTENTION, gated(bias=MLP_BIAS), TWO_NORMS)
TRANSFORMER = outside("transformer.word_embeddings", "transformer.ln_f", final_bias=True)

DENSE: Rows = {
    "llama": Family(LLAMA, strict=True),
    "granite": Family(LLAMA, strict=True),
    "smollm3": Family(LLAMA, strict=True),
    "mistral": Family(everywhere(separate(), gated(), TWO_NORMS), strict=True),
    "ministral": Family(everywhere(separate(), gated(), TWO_NORMS)),
    "ministral3": Family(everywhere(separate(), gated(), TWO_NORMS)),
    "helium": Family(LLAMA),
    "internlm2": Family(
        everywhere(
            fused("attention.wqkv", "attention.wo", bias=If("bias")),
            gated("feed_forward", NUMBERED),
            norms("attention_norm", "ffn_norm"),
        ),
        outside=outside("model.tok_embeddings", head="output"),
    ),
    "internlm3": Family(
        everywhere(
            separate(bias_if=If("qkv_bias"), biased="qkv", out_bias_if=If("bias")),
            gated(bias=If("bias")),
            TWO_NORMS,
        )
    ),
    "apertus": Family(
        everywhere(
            HEAD_NORMS,
            plain("mlp.up_proj", "mlp.down_proj", bias=MLP_BIAS),
            xielu,
            norms("attention_layernorm", "feedforward_layernorm"),
        )
    ),
    "qwen2": Family(everywhere(separate(bias="qkv"), gated(), TWO_NORMS), strict=True),
    "qwen3": Family(everywhere(HEAD_NORMS, gated(), TWO_NORMS), strict=True),
    "seed_oss": Family(
        everywhere(
            separate(bias_if=If("attention_bias", True), biased="qkv", out_bias_if=If("attention_out_bias")),
            gated(bias=MLP_BIAS),
            TWO_NORMS,
        )
    ),
    "ernie4_5": Family(everywhere(separate(bias_if=USE_BIAS), gated(bias=USE_BIAS), TWO_NORMS)),
    "hunyuan_v1_dense": Family(
        everywhere(
            separate(bias_if=BIASED, norm_kind="head", norm_names=("query_layernorm", "key_layernorm")),
            gated(),
            TWO_NORMS,
        )
    ),
    "arcee": Family(everywhere(ATTENTION, plain("mlp.up_proj", "mlp.down_proj", bias=MLP_BIAS), TWO_NORMS)),
    "gemma": Family(everywhere(ATTENTION, gated(), TWO_NORMS)),
    "gemma2": Family(everywhere(ATTENTION, gated(), FOUR_NORMS)),
    "gemma3_text": Family(everywhere(HEAD_NORMS, gated(), FOUR_NORMS)),
    "olmo": Family(everywhere(ATTENTION, gated()), outside=outside(final="")),
    "olmo2": Family(everywhere(separate(bias_if=BIASED, norm_kind="all"), gated(), AFTER_NORMS)),
    "olmo3": Family(everywhere(separate(bias_if=BIASED, norm_kind="all"), gated(), AFTER_NORMS)),
    "exaone4": Family(everywhere(separate(norm_kind="head"), gated(), AFTER_NORMS)),
    "cohere": Family(
        everywhere(
            separate(bias_if=BIASED, norm_kind="heads", norm_if=If("use_qk_norm")), gated(), norms("input_layernorm")
        )
    ),
    "cohere2": Family(everywhere(ATTENTION, gated(), norms("input_layernorm"))),
    "glm": Family(
        everywhere(separate(bias_if=If("attention_bias", True), biased="qkv"), joined(), TWO_NORMS),
    ),
    "glm4": Family(everywhere(separate(bias_if=BIASED, biased="qkv"), joined(), GLM4_NORMS)),
    "phi3": Family(everywhere(fused("self_attn.qkv_proj", "self_attn.o_proj"), joined(), TWO_NORMS), strict=True),
    "phi": Family(
        everywhere(
            separate(bias="qkvo", out="dense", norm_kind="layer", norm_if=If("qk_layernorm"),
                     norm_names=("q_layernorm", "k_layernorm")),
            plain("mlp.fc1", "mlp.fc2", bias=True),
            norms("input_layernorm", bias=True),
        ),
        outside=outside(final="model.final_layernorm", final_bias=True, head_bias=True),
    ),
    "starcoder2": Family(
        everywhere(
            separate(bias_if=If("use_bias", True)),
            plain("mlp.c_fc", "mlp.c_proj", bias=If("use_bias", True)),
            TWO_LAYER_NORMS,
        ),
        outside=outside(final_bias=True),
    ),
    "stablelm": Family(
        everywhere(
            separate(bias_if=If("use_qkv_bias"), biased="qkv"),
            stablelm_norms,
            gated(),
            norms("input_layernorm", bias=True),
            parallel_norm("post_attention_layernorm", If("use_parallel_residual")),
        ),
        outside=outside(final_bias=True),
    ),
    "nemotron": Family(
        everywhere(ATTENTION, plain("mlp.up_proj", "mlp.down_proj", bias=MLP_BIAS), TWO_LAYER_NORMS),
        outside=outside(final_bias=True),
    ),
    "gpt_neox": Family(
        everywhere(
            fused("attention.query_key_value", "attention.dense", bias=If("attention_bias", True)),
            plain("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias=True),
            TWO_LAYER_NORMS,
        ),
        module="gpt_neox.layers",
        outside=outside("gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out", final_bias=True),
    ),
    "falcon": Family(
        everywhere(
            falcon_attention, plain("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias=If("bias")), falcon_norms
        ),
        module="transformer.h",
        outside=TRANSFORMER,
    ),
    "bloom": Family(
        everywhere(
            fused("self_attention.query_key_value", "self_attention.dense", bias=True),
            plain("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias=True),
            TWO_LAYER_NORMS,
        ),
        module="transformer.h",
        outside=outside(
            "transformer.word_embeddings",
            "transformer.ln_f",
            final_bias=True,
            more=norms("transformer.word_embeddings_layernorm", bias=True),
        ),
    ),
    "opt": Family(
        everywhere(
            separate(bias="qkvo", out="out_proj"),
            plain("fc1", "fc2", bias=True),
            norms("self_attn_layer_norm", "final_layer_norm", bias=True),
        ),
        module="model.decoder.layers",
        outside=opt_outside,
    ),
    "gpt2": Family(
        everywhere(
            fused("attn.c_attn", "attn.c_proj", bias=True, transposed=True),
            plain("mlp.c_fc", "mlp.c_proj", bias=True, transposed=True),
            norms("ln_1", "ln_2", bias=True),
        ),
        module="transformer.h",
        outside=outside("transformer.wte", "transformer.ln_f", final_bias=True, more=positions("transformer.wpe")),
    ),
    "gpt_bigcode": Family(
        everywhere(
            fused("attn.c_attn", "attn.c_proj", bias=True),
            plain("mlp.c_fc", "mlp.c_proj", bias=True),
            norms("ln_1", "ln_2", bias=True),
        ),
        module="transformer.h",
        outside=outside("transformer.wte", "transformer.ln_f", final_bias=True, more=positions("transformer.wpe")),
    ),
}  # fmt: skip
