"""config.json of a tiny model of every family: sizes all different, so that none can stand in for another."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

SIZES: Config = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 512, "tie_word_embeddings": False,
    "pad_token_id": 0,
}  # fmt: skip
WIDE = {"head_dim": 20}  # heads x head_dim is not the hidden size
FOUR_KV = {"num_key_value_heads": 4}
PAIRS = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 32}
LINEAR = {"layer_types": ["linear_attention"] * 3 + ["full_attention"]}


def model(model_type: str, name: str, *parts: Config, without: tuple[str, ...] = (), **keys: Any) -> Config:
    """A whole config.json; later keys replace earlier ones, `without` leaves keys of SIZES out."""
    base = {key: value for key, value in SIZES.items() if key not in without}
    made = {"model_type": model_type, "architectures": [name], "dtype": "bfloat16", **base}
    for part in parts:
        made |= part
    return made | keys


def text(config: Config) -> Config:
    """The same as the part of a larger config.json."""
    return {key: value for key, value in config.items() if key not in ("architectures", "dtype")}


def whole(model_type: str, name: str, language: Config, **keys: Any) -> Config:
    made = {"model_type": model_type, "architectures": [name], "dtype": "bfloat16", "text_config": text(language)}
    return made | {"tie_word_embeddings": language["tie_word_embeddings"]} | keys


_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_LOCAL = {"num_local_experts": 8, "num_experts_per_tok": 2}
_SHARED = {"shared_expert_intermediate_size": 40}
_ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "n_shared_experts": 2,
           "n_group": 1, "topk_group": 1}  # fmt: skip
_FIRST = {"first_k_dense_replace": 1}
_MLA = {"kv_lora_rank": 32, "q_lora_rank": 28, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12,
        **FOUR_KV}  # fmt: skip
_INDEX = {"index_topk": 16, "index_head_dim": 10, "index_n_heads": 3}
_LISTED = {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}
_GDN = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 12, "linear_value_head_dim": 10,
        "linear_conv_kernel_dim": 4}  # fmt: skip
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_expand": 2, "mamba_d_state": 12, "mamba_n_groups": 2,
          "mamba_d_conv": 4}  # fmt: skip
_MIXED = {"layer_types": ["mamba", "mamba", "attention", "mamba"]}
_NEMOTRON = {"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 12, "n_groups": 2, "conv_kernel": 4,
             "expand": 2, **WIDE}  # fmt: skip
_CONV = {"conv_L_cache": 3, "conv_bias": False, "layer_types": ["conv", "conv", "full_attention", "conv"]}
_GEMMA4 = {"head_dim": 16, "global_head_dim": 32, "vocab_size_per_layer_input": 256, **PAIRS}
_SHARED_KEYS = {"num_global_key_value_heads": 1, "attention_k_eq_v": True, "hidden_size_per_layer_input": 0}
_FALCON = {"multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "bias": False, "alibi": False}
_NO_KV = ("num_key_value_heads", "intermediate_size")
_GPT = {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 512, "vocab_size": 320, "tie_word_embeddings": True}

DENSE: dict[str, Config] = {
    "llama": model("llama", "LlamaForCausalLM", WIDE),
    "llama-biased": model("llama", "LlamaForCausalLM", attention_bias=True, mlp_bias=True),
    "mistral": model("mistral", "MistralForCausalLM", WIDE, sliding_window=None),
    "ministral": model("ministral", "MinistralForCausalLM", WIDE, sliding_window=64),
    "qwen2": model("qwen2", "Qwen2ForCausalLM"),
    "qwen3": model("qwen3", "Qwen3ForCausalLM", WIDE),
    "phi": model("phi", "PhiForCausalLM"),
    "phi-normed": model("phi", "PhiForCausalLM", qk_layernorm=True),
    "phi3": model("phi3", "Phi3ForCausalLM", sliding_window=None),
    "granite": model("granite", "GraniteForCausalLM", tie_word_embeddings=True),
    "smollm3": model("smollm3", "SmolLM3ForCausalLM"),
    "gemma": model("gemma", "GemmaForCausalLM", WIDE, tie_word_embeddings=True),
    "gemma2": model("gemma2", "Gemma2ForCausalLM", WIDE, sliding_window=32, tie_word_embeddings=True),
    "gemma3_text": model("gemma3_text", "Gemma3ForCausalLM", WIDE, sliding_window=32, tie_word_embeddings=True),
    "olmo": model("olmo", "OlmoForCausalLM"),
    "olmo2": model("olmo2", "Olmo2ForCausalLM"),
    "olmo3": model("olmo3", "Olmo3ForCausalLM", sliding_window=32),
    "starcoder2": model("starcoder2", "Starcoder2ForCausalLM", use_bias=True, sliding_window=None),
    "stablelm": model("stablelm", "StableLmForCausalLM"),
    "stablelm-normed": model("stablelm", "StableLmForCausalLM", use_qkv_bias=True, qk_layernorm=True),
    "stablelm-parallel": model("stablelm", "StableLmForCausalLM", use_parallel_residual=True),
    "cohere": model("cohere", "CohereForCausalLM", tie_word_embeddings=True),
    "cohere-normed": model("cohere", "CohereForCausalLM", use_qk_norm=True),
    "cohere2": model("cohere2", "Cohere2ForCausalLM", sliding_window=32),
    "glm": model("glm", "GlmForCausalLM", WIDE, attention_bias=True),
    "glm4": model("glm4", "Glm4ForCausalLM", WIDE, attention_bias=True),
    "exaone4": model("exaone4", "Exaone4ForCausalLM", sliding_window=32),
    "nemotron": model("nemotron", "NemotronForCausalLM", WIDE),
    "seed_oss": model("seed_oss", "SeedOssForCausalLM", WIDE, attention_bias=True, attention_out_bias=False),
    "ernie4_5": model("ernie4_5", "Ernie4_5ForCausalLM", WIDE, use_bias=False),
    "hunyuan_v1_dense": model("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", WIDE),
    "arcee": model("arcee", "ArceeForCausalLM"),
    "apertus": model("apertus", "ApertusForCausalLM"),
    "helium": model("helium", "HeliumForCausalLM", head_dim=16),
    "gpt_neox": model("gpt_neox", "GPTNeoXForCausalLM", without=("num_key_value_heads",)),
    "falcon-7b": model("falcon", "FalconForCausalLM", _FALCON, without=_NO_KV),
    "falcon-40b": model("falcon", "FalconForCausalLM", _FALCON, num_kv_heads=2, new_decoder_architecture=True,
                        without=_NO_KV),
    "falcon-11b": model("falcon", "FalconForCausalLM", _FALCON, num_kv_heads=2, new_decoder_architecture=True,
                        num_ln_in_parallel_attn=1, without=_NO_KV),
    "falcon-rw": model("falcon", "FalconForCausalLM", _FALCON, multi_query=False, parallel_attn=False, bias=True,
                       alibi=True, without=_NO_KV),
    "opt": model("opt", "OPTForCausalLM", ffn_dim=96, word_embed_proj_dim=64, tie_word_embeddings=True,
                 without=_NO_KV),
    "opt-350m": model("opt", "OPTForCausalLM", ffn_dim=96, word_embed_proj_dim=32, do_layer_norm_before=False,
                      tie_word_embeddings=True, without=_NO_KV),
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "dtype": "float32", **_GPT},
    "gpt_bigcode": {"model_type": "gpt_bigcode", "architectures": ["GPTBigCodeForCausalLM"], "dtype": "float32",
                    "multi_query": True, **_GPT},
    "bloom": {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "dtype": "float16", "hidden_size": 64,
              "n_layer": 4, "n_head": 4, "seq_length": 512, "vocab_size": 320, "tie_word_embeddings": True},
}  # fmt: skip

SPARSE: dict[str, Config] = {
    "mixtral": model("mixtral", "MixtralForCausalLM", _LOCAL, sliding_window=None),
    "qwen2_moe": model("qwen2_moe", "Qwen2MoeForCausalLM", _EXPERTS, _SHARED, mlp_only_layers=[1]),
    "qwen3_moe": model("qwen3_moe", "Qwen3MoeForCausalLM", WIDE, _EXPERTS, mlp_only_layers=[1]),
    "deepseek_v2": model("deepseek_v2", "DeepseekV2ForCausalLM", _ROUTED, _FIRST, _MLA, topk_method="greedy"),
    "deepseek_v2-lite": model("deepseek_v2", "DeepseekV2ForCausalLM", _ROUTED, _FIRST, _MLA, q_lora_rank=None,
                              topk_method="greedy"),
    "deepseek_v3": model("deepseek_v3", "DeepseekV3ForCausalLM", _ROUTED, _FIRST, _MLA, num_nextn_predict_layers=1),
    "deepseek_v32": model("deepseek_v32", "DeepseekV32ForCausalLM", _ROUTED, _FIRST, _MLA, _INDEX),
    "glm_moe_dsa": model("glm_moe_dsa", "GlmMoeDsaForCausalLM", _ROUTED, _LISTED, _MLA, _INDEX),
    "glm4_moe_lite": model("glm4_moe_lite", "Glm4MoeLiteForCausalLM", _ROUTED, _LISTED, _MLA),
    "glm4_moe": model("glm4_moe", "Glm4MoeForCausalLM", WIDE, _ROUTED, _FIRST, use_qk_norm=True, attention_bias=True,
                      num_nextn_predict_layers=1),
    "dots1": model("dots1", "Dots1ForCausalLM", WIDE, _ROUTED, _FIRST),
    "gpt_oss": model("gpt_oss", "GptOssForCausalLM", WIDE, _LOCAL, PAIRS),
    "llama4_text": model("llama4_text", "Llama4ForCausalLM", WIDE, _LOCAL, intermediate_size=24,
                         intermediate_size_mlp=96, num_experts_per_tok=1, interleave_moe_layer_step=2,
                         moe_layers=[1, 3], attention_chunk_size=64),
    "granitemoe": model("granitemoe", "GraniteMoeForCausalLM", _LOCAL),
    "granitemoeshared": model("granitemoeshared", "GraniteMoeSharedForCausalLM", _LOCAL, shared_intermediate_size=40),
    "olmoe": model("olmoe", "OlmoeForCausalLM", num_experts=8, num_experts_per_tok=2),
    "ernie4_5_moe": model("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", moe_num_experts=8, moe_k=2,
                          moe_intermediate_size=24, moe_num_shared_experts=2, moe_layer_start_index=1,
                          moe_layer_end_index=3, moe_layer_interval=1),
    "minimax_m2": model("minimax_m2", "MiniMaxM2ForCausalLM", WIDE, _LOCAL),
    "phimoe": model("phimoe", "PhiMoEForCausalLM", _LOCAL, attention_bias=True, lm_head_bias=True,
                    sliding_window=None),
    "hunyuan_v1_moe": model("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", WIDE, num_experts=8, moe_topk=2,
                            moe_intermediate_size=96, num_shared_expert=1),
}  # fmt: skip

HYBRID: dict[str, Config] = {
    "gemma3n_text": model("gemma3n_text", "Gemma3nForCausalLM", WIDE, PAIRS, vocab_size_per_layer_input=256,
                          hidden_size_per_layer_input=8, laurel_rank=4, altup_num_inputs=4, num_kv_shared_layers=2,
                          intermediate_size=[96] * 4, activation_sparsity_pattern=[0.0] * 4),
    "gemma4_text": model("gemma4_text", "Gemma4ForCausalLM", _GEMMA4, _SHARED_KEYS),
    "gemma4_text-e2b": model("gemma4_text", "Gemma4ForCausalLM", _GEMMA4, num_global_key_value_heads=None,
                             attention_k_eq_v=False, hidden_size_per_layer_input=8, num_kv_shared_layers=2,
                             use_double_wide_mlp=True),
    "gemma4_text-moe": model("gemma4_text", "Gemma4ForCausalLM", _GEMMA4, _SHARED_KEYS, enable_moe_block=True,
                             num_experts=8, top_k_experts=2, moe_intermediate_size=24),
    "qwen3_next": model("qwen3_next", "Qwen3NextForCausalLM", WIDE, _EXPERTS, _SHARED, _GDN, LINEAR),
    "qwen3_5_text": model("qwen3_5_text", "Qwen3_5ForCausalLM", WIDE, _GDN, LINEAR),
    "qwen3_5_moe_text": model("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", WIDE, _EXPERTS, _SHARED, _GDN, LINEAR),
    "granitemoehybrid": model("granitemoehybrid", "GraniteMoeHybridForCausalLM", _LOCAL, _MAMBA, _MIXED,
                              shared_intermediate_size=40),
    "granitemoehybrid-dense": model("granitemoehybrid", "GraniteMoeHybridForCausalLM", _MAMBA, _MIXED,
                                    num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=40),
    "bamba": model("bamba", "BambaForCausalLM", _MAMBA, attn_layer_indices=[2], attn_rotary_emb=8),
    "falcon_h1": model("falcon_h1", "FalconH1ForCausalLM", WIDE, _MAMBA, mamba_d_ssm=128),
    "falcon_h1-normed": model("falcon_h1", "FalconH1ForCausalLM", WIDE, _MAMBA, mamba_d_ssm=128, mamba_rms_norm=True,
                              projectors_bias=True),
    "jamba": model("jamba", "JambaForCausalLM", num_experts=8, num_experts_per_tok=2, expert_layer_period=2,
                   expert_layer_offset=1, attn_layer_period=4, attn_layer_offset=2, mamba_d_state=12, mamba_d_conv=4,
                   mamba_expand=2, mamba_dt_rank=6),
    "nemotron_h": model("nemotron_h", "NemotronHForCausalLM", _NEMOTRON, hybrid_override_pattern="M-M*"),
    "nemotron_h-moe": model("nemotron_h", "NemotronHForCausalLM", _NEMOTRON, _ROUTED, hybrid_override_pattern="MEM*",
                            moe_shared_expert_intermediate_size=40, n_shared_experts=1),
    "lfm2": model("lfm2", "Lfm2ForCausalLM", _CONV, block_auto_adjust_ff_dim=False),
    "lfm2-adjusted": model("lfm2", "Lfm2ForCausalLM", _CONV, block_auto_adjust_ff_dim=True, block_multiple_of=16,
                           block_ffn_dim_multiplier=1.5),
    "lfm2_moe": model("lfm2_moe", "Lfm2MoeForCausalLM", _CONV, _EXPERTS, num_dense_layers=1),
    "zamba2": model("zamba2", "Zamba2ForCausalLM", FOUR_KV, mamba_d_state=12, mamba_d_conv=4, mamba_expand=2,
                    mamba_ngroups=1, n_mamba_heads=8, adapter_rank=6, num_mem_blocks=1, hybrid_layer_ids=[1, 3],
                    layers_block_type=["mamba", "hybrid", "mamba", "hybrid"], use_mem_rope=True),
}  # fmt: skip

_VISION = {"hidden_size": 48, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
           "patch_size": 4, "image_size": 16}  # fmt: skip
SIGLIP = _VISION | {"model_type": "siglip_vision_model"}
CLIP = _VISION | {"model_type": "clip_vision_model", "projection_dim": 48}
PIXTRAL = _VISION | {"model_type": "pixtral", "head_dim": 12}
_HEADLESS = SIGLIP | {"vision_use_head": False}
_GEMMA4_VISION = _VISION | {"model_type": "gemma4_vision", "num_key_value_heads": 4, "head_dim": 12,
                            "position_embedding_size": 16, "pooling_kernel_size": 2}  # fmt: skip
_GEMMA4_AUDIO = {"model_type": "gemma4_audio", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "subsampling_conv_channels": [8, 4], "conv_kernel_size": 5, "output_proj_dims": 24}  # fmt: skip
_QWEN = {"depth": 3, "hidden_size": 48, "intermediate_size": 56, "num_heads": 4, "patch_size": 4,
         "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "out_hidden_size": 64}  # fmt: skip
_QWEN3 = _QWEN | {"num_position_embeddings": 16}
_DEEP = {"deepstack_visual_indexes": [1, 2]}
_LLAMA4 = _VISION | {"model_type": "llama4_vision_model", "intermediate_size": 192, "vision_output_dim": 40,
                     "projector_input_dim": 40, "projector_output_dim": 40, "pixel_shuffle_ratio": 0.5}  # fmt: skip
_INTERN = _VISION | {"model_type": "internvl_vision", "patch_size": [4, 4], "image_size": [16, 16],
                     "use_qk_norm": True, "attention_bias": True}  # fmt: skip
_WHISPER = {"model_type": "qwen2_audio_encoder", "d_model": 48, "encoder_layers": 3, "encoder_attention_heads": 4,
            "encoder_ffn_dim": 56, "num_mel_bins": 16, "max_source_positions": 50}  # fmt: skip
_VOXTRAL = {"model_type": "voxtral_encoder", "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
            "intermediate_size": 192, "num_mel_bins": 16, "max_source_positions": 50}  # fmt: skip
_QWEN3_TEXT = model("qwen3_vl_text", "", WIDE)
_QWEN3_MOE_TEXT = model("qwen3_vl_moe_text", "", WIDE, _EXPERTS)
_COHERE2 = model("cohere2", "", PAIRS, tie_word_embeddings=True)

MULTIMODAL: dict[str, Config] = {
    "gemma3": whole("gemma3", "Gemma3ForConditionalGeneration", DENSE["gemma3_text"], vision_config=SIGLIP,
                    mm_tokens_per_image=4),
    "gemma4": whole("gemma4", "Gemma4ForConditionalGeneration", HYBRID["gemma4_text"], vision_config=_GEMMA4_VISION,
                    audio_config=None),
    "gemma4-standardized": whole("gemma4", "Gemma4ForConditionalGeneration", HYBRID["gemma4_text"], audio_config=None,
                                 vision_config=_GEMMA4_VISION | {"standardize": True, "use_clipped_linears": True}),
    "gemma4-audio": whole("gemma4", "Gemma4ForConditionalGeneration", HYBRID["gemma4_text-e2b"],
                          vision_config=_GEMMA4_VISION, audio_config=_GEMMA4_AUDIO),
    "mistral3": whole("mistral3", "Mistral3ForConditionalGeneration", DENSE["mistral"], vision_config=PIXTRAL,
                      spatial_merge_size=2, multimodal_projector_bias=False),
    "llava": whole("llava", "LlavaForConditionalGeneration", DENSE["llama"], vision_config=CLIP),
    "llava-pixtral": whole("llava", "LlavaForConditionalGeneration", DENSE["mistral"], vision_config=PIXTRAL,
                           vision_feature_layer=-1),
    "llava_next": whole("llava_next", "LlavaNextForConditionalGeneration", DENSE["granite"], vision_config=SIGLIP,
                        vision_feature_layer=[-3, -1], image_grid_pinpoints=[[16, 16]]),
    "llava_onevision": whole("llava_onevision", "LlavaOnevisionForConditionalGeneration", DENSE["qwen2"],
                             vision_config=_HEADLESS),
    "aya_vision": whole("aya_vision", "AyaVisionForConditionalGeneration", _COHERE2, vision_config=_HEADLESS,
                        alignment_intermediate_size=72, downsample_factor=2, adapter_layer_norm_eps=1e-6),
    "idefics3": whole("idefics3", "Idefics3ForConditionalGeneration", DENSE["llama"], scale_factor=2, pad_token_id=0,
                      vision_config=_VISION | {"model_type": "idefics3_vision"}),
    "smolvlm": whole("smolvlm", "SmolVLMForConditionalGeneration", DENSE["llama"], scale_factor=2, pad_token_id=0,
                     vision_config=_VISION | {"model_type": "smolvlm_vision"}),
    "llama4": whole("llama4", "Llama4ForConditionalGeneration", SPARSE["llama4_text"], vision_config=_LLAMA4),
    "internvl": whole("internvl", "InternVLForConditionalGeneration", DENSE["qwen2"], vision_config=_INTERN),
    "qwen2_vl": whole("qwen2_vl", "Qwen2VLForConditionalGeneration", model("qwen2_vl_text", ""), vision_config={
                      **_QWEN, "embed_dim": 48, "hidden_size": 64, "mlp_ratio": 2}),
    "qwen2_5_vl": whole("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", model("qwen2_5_vl_text", ""),
                        vision_config=_QWEN),
    "qwen3_vl": whole("qwen3_vl", "Qwen3VLForConditionalGeneration", _QWEN3_TEXT, vision_config=_QWEN3 | _DEEP),
    "qwen3_vl_moe": whole("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", _QWEN3_MOE_TEXT,
                          vision_config=_QWEN3 | _DEEP),
    "qwen3_5": whole("qwen3_5", "Qwen3_5ForConditionalGeneration", HYBRID["qwen3_5_text"], vision_config=_QWEN3),
    "qwen3_5_moe": whole("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", HYBRID["qwen3_5_moe_text"],
                         vision_config=_QWEN3),
    "qwen2_audio": whole("qwen2_audio", "Qwen2AudioForConditionalGeneration", DENSE["qwen2"], audio_config=_WHISPER),
    "voxtral": whole("voxtral", "VoxtralForConditionalGeneration", DENSE["llama"], audio_config=_VOXTRAL),
}  # fmt: skip

TINY: dict[str, Config] = {**DENSE, **SPARSE, **HYBRID, **MULTIMODAL}
