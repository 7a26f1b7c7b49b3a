"""Parameter counts that hubs show for real models, and the configs of those models.

Both are recalled, independently of each other and of this code: a count is met to the last element by the right shapes
alone.
"""

from __future__ import annotations

from typing import Any

import pytest

from deployc.facts.architecture import FAMILIES, WHOLES, architecture
from deployc.facts.shapes import shapes
from deployc.types.prediction_layers import split_prediction

Config = dict[str, Any]
TIED = {"tie_word_embeddings": True}


def language(
    model_type: str, hidden: int, inner: int, layers: int, heads: int, kv_heads: int, vocab: int, **other: Any
) -> Config:
    return {
        "model_type": model_type, "architectures": [FAMILIES[model_type].name], "dtype": "bfloat16",
        "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": vocab, "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    } | other  # fmt: skip


def whole(model_type: str, text: Config, vision: Config, **other: Any) -> Config:
    nested = {key: value for key, value in text.items() if key not in ("architectures", "dtype")}
    return {
        "model_type": model_type, "architectures": [WHOLES[model_type].name], "dtype": "bfloat16",
        "tie_word_embeddings": text["tie_word_embeddings"], "text_config": nested, "vision_config": vision,
    } | other  # fmt: skip


SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
          "num_attention_heads": 16, "patch_size": 14, "image_size": 896, "vision_use_head": False}  # fmt: skip
GRANITE_SIGLIP = {k: v for k, v in SIGLIP.items() if k != "vision_use_head"} | {"image_size": 384}
CLIP = {"model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "patch_size": 14, "image_size": 336}  # fmt: skip
PIXTRAL = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
           "num_attention_heads": 16, "head_dim": 64, "patch_size": 14, "image_size": 1540}  # fmt: skip
QWEN2_TOWER = {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14,
               "spatial_merge_size": 2, "temporal_patch_size": 2}  # fmt: skip
QWEN2_5_TOWER = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "patch_size": 14,
                 "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584}  # fmt: skip
QWEN3_TOWER = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
               "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304,
               "deepstack_visual_indexes": [8, 16, 24]}  # fmt: skip
LLAMA4_TOWER = {"model_type": "llama4_vision_model", "hidden_size": 1408, "intermediate_size": 5632,
                "num_hidden_layers": 34, "num_attention_heads": 16, "patch_size": 14, "image_size": 336,
                "vision_output_dim": 4096, "projector_input_dim": 4096, "projector_output_dim": 4096,
                "pixel_shuffle_ratio": 0.5}  # fmt: skip
GEMMA4_TOWER = {"model_type": "gemma4_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 72, "patch_size": 16,
                "position_embedding_size": 10240, "standardize": True}  # fmt: skip
INTERN_VIT = {"model_type": "intern_vit_6b", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
              "num_attention_heads": 16, "patch_size": 14, "image_size": 448, "qkv_bias": True,
              "qk_normalization": False, "norm_type": "layer_norm"}  # fmt: skip
GDN = {"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
       "linear_conv_kernel_dim": 4, "full_attention_interval": 4}  # fmt: skip
MLA = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 512, "q_lora_rank": 1536}


def gemma(model_type: str, *sizes: int, window: int, head_dim: int = 256) -> Config:
    return language(model_type, *sizes, head_dim=head_dim, sliding_window=window, **TIED)


def routed(experts: int, per_token: int, size: int, shared: int, first: int) -> Config:
    return {"n_routed_experts": experts, "num_experts_per_tok": per_token, "moe_intermediate_size": size,
            "n_shared_experts": shared, "first_k_dense_replace": first}  # fmt: skip


def llama4(experts: int, step: int) -> Config:
    text = language("llama4_text", 5120, 8192, 48, 40, 8, 202048, head_dim=128, intermediate_size_mlp=16384,
                    num_local_experts=experts, num_experts_per_tok=1, interleave_moe_layer_step=step,
                    attention_chunk_size=8192)  # fmt: skip
    return whole("llama4", text, LLAMA4_TOWER)


def chat(text: Config) -> Config:
    """InternVL's own code, with InternViT 300M."""
    return {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "dtype": "bfloat16",
            "llm_config": text, "vision_config": INTERN_VIT, "downsample_ratio": 0.5}  # fmt: skip


PUBLISHED: dict[str, tuple[Config, int]] = {
    "Yi-1.5-34B": (language("llama", 7168, 20480, 60, 56, 8, 64000), 34_388_917_248),
    "gemma-2-2b": (gemma("gemma2", 2304, 9216, 26, 8, 4, 256000, window=4096), 2_614_341_888),
    "gemma-2-9b": (gemma("gemma2", 3584, 14336, 42, 16, 8, 256000, window=4096), 9_241_705_984),
    "gemma-2-27b": (gemma("gemma2", 4608, 36864, 46, 32, 16, 256000, window=4096, head_dim=128), 27_227_128_320),
    "gemma-3-1b": (gemma("gemma3_text", 1152, 6912, 26, 4, 1, 262144, window=512), 999_885_952),
    "gemma-3-12b": (whole("gemma3", gemma("gemma3_text", 3840, 15360, 48, 16, 8, 262208, window=1024), SIGLIP),
                    12_187_325_040),
    "gemma-3-27b": (whole("gemma3", gemma("gemma3_text", 5376, 21504, 62, 32, 16, 262208, window=1024, head_dim=128),
                          SIGLIP), 27_432_406_640),
    "gemma-4-31B": (whole("gemma4", language("gemma4_text", 5376, 21504, 60, 32, 16, 262144, head_dim=256,
                          global_head_dim=512, num_global_key_value_heads=4, attention_k_eq_v=True,
                          hidden_size_per_layer_input=0, sliding_window=1024, **TIED), GEMMA4_TOWER), 31_273_088_876),
    "Mistral-Small-3.1-24B": (whole("mistral3", language("mistral", 5120, 32768, 40, 32, 8, 131072, head_dim=128,
                              sliding_window=None), PIXTRAL, spatial_merge_size=2, multimodal_projector_bias=False,
                              vision_feature_layer=-1), 24_011_361_280),
    "phi-4": (language("phi3", 5120, 17920, 40, 40, 10, 100352, sliding_window=None), 14_659_507_200),
    "phi-2": (language("phi", 2560, 10240, 32, 32, 32, 51200), 2_779_683_840),
    "granite-3.1-2b": (language("granite", 2048, 8192, 40, 32, 8, 49155, **TIED), 2_533_531_648),
    "granite-3.1-8b": (language("granite", 4096, 12800, 40, 32, 8, 49155, **TIED), 8_170_848_256),
    "granite-vision-3.3-2b": (whole("llava_next", language("granite", 2048, 8192, 40, 32, 8, 49156, **TIED),
                              GRANITE_SIGLIP, vision_feature_layer=[-24, -20, -12, -1]), 2_975_396_928),
    "llava-1.5-7b-hf": (whole("llava", language("llama", 4096, 11008, 32, 32, 32, 32064), CLIP), 7_063_427_072),
    "llava-v1.6-mistral-7b-hf": (whole("llava_next", language("mistral", 4096, 14336, 32, 32, 8, 32064,
                                 sliding_window=None), CLIP), 7_566_747_648),
    "Qwen2-VL-7B": (whole("qwen2_vl", language("qwen2_vl_text", 3584, 18944, 28, 28, 4, 152064), QWEN2_TOWER),
                    8_291_375_616),
    "Qwen2.5-VL-7B": (whole("qwen2_5_vl", language("qwen2_5_vl_text", 3584, 18944, 28, 28, 4, 152064), QWEN2_5_TOWER),
                      8_292_166_656),
    "Qwen2.5-VL-3B": (whole("qwen2_5_vl", language("qwen2_5_vl_text", 2048, 11008, 36, 16, 2, 151936, **TIED),
                            QWEN2_5_TOWER | {"out_hidden_size": 2048}), 3_754_622_976),
    "Qwen3-VL-8B": (whole("qwen3_vl", language("qwen3_vl_text", 4096, 12288, 36, 32, 8, 151936, head_dim=128),
                          QWEN3_TOWER | {"out_hidden_size": 4096}), 8_767_123_696),
    "Qwen3-VL-30B-A3B": (whole("qwen3_vl_moe", language("qwen3_vl_moe_text", 2048, 6144, 48, 32, 4, 151936,
                               head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768),
                               QWEN3_TOWER | {"out_hidden_size": 2048}), 31_070_754_032),
    "Qwen3.5-27B": (whole("qwen3_5", language("qwen3_5_text", 5120, 17408, 64, 24, 4, 248320, head_dim=256,
                          linear_num_value_heads=48, mtp_num_hidden_layers=1, **GDN),
                          QWEN3_TOWER | {"out_hidden_size": 5120}), 27_781_427_952),
    "Llama-4-Scout": (llama4(16, 1), 108_641_793_536),
    "Llama-4-Maverick": (llama4(128, 2), 401_583_781_376),
    "DeepSeek-V2-Lite": (language("deepseek_v2", 2048, 10944, 27, 16, 16, 102400, **routed(64, 6, 1408, 2, 1),
                         **MLA | {"q_lora_rank": None}), 15_706_484_224),
    "DeepSeek-V2": (language("deepseek_v2", 5120, 12288, 60, 128, 128, 102400, **routed(160, 6, 1536, 2, 1), **MLA),
                    235_741_434_880),
    "Kimi-K2": (language("kimi_k2", 7168, 18432, 61, 64, 64, 163840, **routed(384, 8, 2048, 1, 1), **MLA),
                1_026_408_232_448),
    "gpt-oss-20b": (language("gpt_oss", 2880, 2880, 24, 64, 8, 201088, head_dim=64, num_local_experts=32,
                    num_experts_per_tok=4, sliding_window=128), 20_914_757_184),
    "gpt-oss-120b": (language("gpt_oss", 2880, 2880, 36, 64, 8, 201088, head_dim=64, num_local_experts=128,
                     num_experts_per_tok=4, sliding_window=128), 116_829_156_672),
    "OLMoE-1B-7B": (language("olmoe", 2048, 1024, 16, 16, 16, 50304, num_experts=64, num_experts_per_tok=8),
                    6_919_161_856),
    "granite-3.0-1b-a400m": (language("granitemoe", 1024, 512, 24, 16, 8, 49155, num_local_experts=32,
                             num_experts_per_tok=8, **TIED), 1_334_628_352),
    "Phi-3.5-MoE": (language("phimoe", 4096, 6400, 32, 32, 8, 32064, num_local_experts=16, num_experts_per_tok=2,
                    attention_bias=True, lm_head_bias=True, sliding_window=None), 41_873_153_344),
    "Qwen3-Next-80B-A3B": (language("qwen3_next", 2048, 5120, 48, 16, 2, 151936, head_dim=256, num_experts=512,
                           num_experts_per_tok=10, moe_intermediate_size=512, shared_expert_intermediate_size=512,
                           linear_num_value_heads=32, **GDN), 81_324_862_720),
    "GLM-4.5-Air": (language("glm4_moe", 4096, 10944, 46, 96, 8, 151552, head_dim=128, attention_bias=True,
                    use_qk_norm=False, num_nextn_predict_layers=1, **routed(128, 8, 1408, 1, 1)), 110_468_824_832),
    "GLM-4.5": (language("glm4_moe", 5120, 12288, 92, 96, 8, 151552, head_dim=128, attention_bias=True,
                use_qk_norm=True, num_nextn_predict_layers=1, **routed(160, 8, 1536, 1, 3)), 358_337_791_296),
    "Jamba-v0.1": (language("jamba", 4096, 14336, 32, 32, 8, 65536, num_experts=16, num_experts_per_tok=2,
                   expert_layer_period=2, expert_layer_offset=1, attn_layer_period=8, attn_layer_offset=4,
                   mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=256), 51_570_323_328),
    "LFM2-1.2B": (language("lfm2", 2048, 12288, 16, 32, 8, 65536, conv_L_cache=3, conv_bias=False,
                  block_auto_adjust_ff_dim=True, block_multiple_of=256, block_ffn_dim_multiplier=1.0,
                  full_attn_idxs=[2, 5, 8, 10, 12, 14], **TIED), 1_170_340_608),
    "ERNIE-4.5-0.3B": (language("ernie4_5", 1024, 3072, 18, 16, 2, 103424, head_dim=128, **TIED), 360_748_032),
    "ERNIE-4.5-21B-A3B": (language("ernie4_5_moe", 2560, 12288, 28, 20, 4, 103424, moe_num_experts=64, moe_k=6,
                          moe_intermediate_size=1536, moe_num_shared_experts=2, moe_layer_start_index=1,
                          moe_layer_end_index=27, moe_layer_interval=1, **TIED), 21_825_437_888),
    "Seed-OSS-36B": (language("seed_oss", 5120, 27648, 64, 80, 8, 155136, head_dim=128, attention_bias=True),
                     36_151_104_512),
    "OLMo-2-7B": (language("olmo2", 4096, 11008, 32, 32, 32, 100352), 7_298_617_344),
    "starcoder2-7b": (language("starcoder2", 4608, 18432, 32, 36, 4, 49152, use_bias=True, sliding_window=4096,
                      **TIED), 7_173_923_840),
    "c4ai-command-r-v01": (language("cohere", 8192, 22528, 40, 64, 64, 256000, **TIED), 34_980_831_232),
    "glm-4-9b-hf": (language("glm", 4096, 13696, 40, 32, 2, 151552, head_dim=128, attention_bias=True), 9_399_951_360),
    "pythia-6.9b": (language("gpt_neox", 4096, 16384, 32, 32, 32, 50432), 6_857_302_016),
    "internlm2_5-7b": (language("internlm2", 4096, 14336, 32, 32, 8, 92544, bias=False), 7_737_708_544),
    "internlm3-8b": (language("internlm3", 4096, 10240, 48, 32, 2, 128512, head_dim=128, qkv_bias=False, bias=False),
                     8_804_241_408),
    "InternVL2_5-8B": (chat(language("internlm2", 4096, 14336, 32, 32, 8, 92553, bias=False)), 8_075_365_376),
    "InternVL3-8B": (chat(language("qwen2", 3584, 18944, 28, 28, 4, 151674)), 7_944_373_760),
    "Hunyuan-A13B": (language("hunyuan_v1_moe", 4096, 3072, 32, 32, 8, 128167, head_dim=128, num_experts=64,
                     moe_topk=8, moe_intermediate_size=3072, num_shared_expert=1, **TIED), 80_393_183_232),
    "bloom-7b1": ({"model_type": "bloom", "architectures": ["BloomForCausalLM"], "hidden_size": 4096, "n_layer": 30,
                   "n_head": 32, "seq_length": 2048, "vocab_size": 250880, "dtype": "float16", **TIED}, 7_069_016_064),
    "gpt2": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12,
              "n_positions": 1024, "vocab_size": 50257, "dtype": "float32"}, 124_439_808),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts(name: str) -> None:
    config, parameters = PUBLISHED[name]
    assert sum(group.elements for group in shapes(config, architecture(config))) == parameters


def test_deepseek_v3_with_and_without_the_layer_that_predicts() -> None:
    """671B is the model; its checkpoint has 14B more (the paper's section 2.2).

    By hand, H = 7168: a layer of MLA 187,107,328 + 257 experts of 3 x 2048 x H, 11,318,329,344 + router 256 x H + 256,
    1,835,264 + two norms 2 H; eh_proj 2 H x H; three norms 3 H; embedding and output layer 2 x 129,280 x H.
    """
    config = language("deepseek_v3", 7168, 18432, 61, 128, 128, 129280, num_nextn_predict_layers=1,
                      **routed(256, 8, 2048, 1, 3), **MLA)  # fmt: skip
    own, ahead = split_prediction(shapes(config, architecture(config)), 61)
    assert sum(group.elements for group in own) == 671_026_419_200
    hidden = 7168
    mla = hidden * 1536 + 1536 + 128 * 192 * 1536 + hidden * 576 + 512 + 128 * 256 * 512 + 128 * 128 * hidden
    assert mla == 187_107_328
    layer = mla + 257 * 3 * 2048 * hidden + 256 * hidden + 256 + 2 * hidden
    extra = 2 * hidden * hidden + 3 * hidden + 2 * 129_280 * hidden
    assert sum(group.elements for group in ahead) == layer + extra
    assert all(group.pattern.startswith("model.layers.61.") for group in ahead)
