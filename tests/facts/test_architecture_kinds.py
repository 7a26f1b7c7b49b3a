"""What each layer keeps, for one real model of every kind, derived by hand.

The configs are recalled from the models' public config.json unless a comment says more; they are checked by what the
comments add up, and where it is known by what an engine logged: available memory over tokens is the bytes of one
token (H100, vLLM 0.19.0, 16 bit; of two groups of layers alike half the bytes of all layers).
"""

from __future__ import annotations

from typing import Any

import pytest

from deployc.facts.architecture import architecture
from deployc.types.architecture import Architecture, LayerCache, State

GIB = 2**30
SLIDE, FULL = "sliding_attention", "full_attention"


def language(model_type: str, name: str, **values: Any) -> dict[str, Any]:
    base = {"model_type": model_type, "architectures": [name], "dtype": "bfloat16", "tie_word_embeddings": False}
    return base | values


def sizes(hidden: int, inner: int, layers: int, heads: int, kv_heads: int, vocab: int, length: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": vocab, "max_position_embeddings": length,
    }  # fmt: skip


def token_bytes(arch: Architecture) -> int:
    """Bytes that one token takes in all layers, in 16 bits."""
    return sum(len(c.layers) * c.kv_heads * (c.head_dim + c.head_dim_v) * 2 for c in arch.caches)


def kept(arch: Architecture) -> list[tuple[str, int, int, int, int]]:
    """(kind, layers, KV heads, head dimension, window)."""
    return [(c.kind, len(c.layers), c.kv_heads, c.head_dim, c.window) for c in arch.caches]


# --- windows ---------------------------------------------------------------------------------------------------------


def test_gemma2_alternates_window_and_full() -> None:
    config = language("gemma2", "Gemma2ForCausalLM", **sizes(2304, 9216, 26, 8, 4, 256000, 8192), head_dim=256,
                      sliding_window=4096, tie_word_embeddings=True)  # fmt: skip
    arch = architecture(config)
    assert kept(arch) == [("sliding", 13, 4, 256, 4096), ("full", 13, 4, 256, 0)]
    assert arch.caches[0].layers == tuple(range(0, 26, 2))  # the first layer has the window
    assert arch.attention == "hybrid"
    # 26 layers x 4 heads x (256 + 256) x 2 B = 106,496; logged for gemma-2-2b-it: 66.47 GiB, 670,160 tokens
    assert token_bytes(arch) == 106_496 == pytest.approx(66.47 * GIB / 670_160, rel=1e-3)


def test_gemma3_has_five_windows_to_a_full_layer_and_a_tower() -> None:
    # gemma-3-12b-it, as transformers writes it: of the text model only what differs from its class
    text = {"model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16,
            "num_hidden_layers": 48, "num_key_value_heads": 8, "sliding_window": 1024}  # fmt: skip
    vision = {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
              "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}  # fmt: skip
    config = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "torch_dtype": "bfloat16",
              "mm_tokens_per_image": 256, "text_config": text, "vision_config": vision}  # fmt: skip
    arch = architecture(config)
    assert kept(arch) == [("sliding", 40, 8, 256, 1024), ("full", 8, 8, 256, 0)]  # 48 = 8 x (5 + 1)
    assert arch.caches[1].layers == (5, 11, 17, 23, 29, 35, 41, 47)
    # 48 x 8 x 512 x 2 B = 393,216; logged: 47.72 GiB, 130,304 tokens
    assert token_bytes(arch) == 393_216 == pytest.approx(47.72 * GIB / 130_304, rel=1e-3)
    assert (arch.vocab_size, arch.tie_word_embeddings, arch.text) == (262_208, True, "gemma3_text")
    (tower,) = arch.towers
    assert (tower.kind, tower.layers, tower.hidden_size, tower.heads, tower.tokens) == ("vision", 27, 1152, 16, 256)


def test_gpt_oss_has_its_window_in_even_layers_and_experts_in_all() -> None:
    config = language("gpt_oss", "GptOssForCausalLM", **sizes(2880, 2880, 24, 64, 8, 201088, 131072), head_dim=64,
                      sliding_window=128, layer_types=[SLIDE, FULL] * 12, num_local_experts=32,
                      num_experts_per_tok=4, experts_per_token=4)  # fmt: skip
    arch = architecture(config)  # gpt-oss-20b
    assert kept(arch) == [("sliding", 12, 8, 64, 128), ("full", 12, 8, 64, 0)]
    # 24 x 8 x 128 x 2 B = 49,152 over two groups of layers; logged: 59.32 GiB, 2,591,776 tokens
    assert token_bytes(arch) // 2 == 24_576 == pytest.approx(59.32 * GIB / 2_591_776, rel=1e-3)
    assert (arch.experts, arch.experts_per_token, arch.moe_intermediate_size) == (32, 4, 2880)
    assert arch.moe_layers == tuple(range(24))


def test_mistral_7b_of_the_first_version_looks_at_a_window_everywhere() -> None:
    config = language("mistral", "MistralForCausalLM", **sizes(4096, 14336, 32, 32, 8, 32000, 32768))
    arch = architecture(config | {"sliding_window": 4096})
    assert kept(arch) == [("sliding", 32, 8, 128, 4096)]
    assert arch.attention == "gqa"  # all layers alike
    assert kept(architecture(config)) == kept(arch)  # absent, it is what MistralConfig documents
    for none in (None, 0):  # the engine takes 0 as none: vllm/config/model.py
        assert kept(architecture(config | {"sliding_window": none})) == [("full", 32, 8, 128, 0)]


def test_layers_that_share_keep_nothing() -> None:
    # gemma-3n-E4B: 35 layers, each fifth full, the last 15 read what layers 18 (window) and 19 (full) keep
    text = {"model_type": "gemma3n_text", "intermediate_size": [16384] * 35, "num_kv_shared_layers": 15}
    config = {"model_type": "gemma3n", "architectures": ["Gemma3nForConditionalGeneration"], "torch_dtype": "bfloat16",
              "text_config": text, "vision_config": {"architecture": "mobilenetv5_300m_enc"},
              "audio_config": {}}  # fmt: skip
    arch = architecture(config)
    assert kept(arch) == [("sliding", 16, 2, 256, 512), ("full", 4, 2, 256, 0)]  # of 20 layers: 16 + 4
    assert (arch.layers, arch.intermediate_size) == (35, 16384)
    assert [(t.kind, t.layers, t.tokens) for t in arch.towers] == [("vision", 0, 256), ("audio", 12, 188)]


GEMMA4 = sizes(5376, 21504, 60, 32, 16, 262144, 262144) | {
    "model_type": "gemma4_text", "head_dim": 256, "sliding_window": 1024, "attention_k_eq_v": True,
    "layer_types": ([SLIDE] * 5 + [FULL]) * 10, "enable_moe_block": False,
}  # fmt: skip
GEMMA4_VISION = {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304, "num_attention_heads": 16,
                 "patch_size": 16}  # fmt: skip


@pytest.mark.parametrize(
    "own",
    [
        {"global_head_dim": 512, "num_global_key_value_heads": 4},
        {"per_layer_config": {str(n): {"head_dim": 512, "num_key_value_heads": 4} for n in range(5, 60, 6)}},
    ],
)
def test_gemma4_has_other_heads_in_its_full_layers(own: dict[str, Any]) -> None:
    config = {"model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "dtype": "bfloat16",
              "text_config": GEMMA4 | own, "vision_config": GEMMA4_VISION}  # fmt: skip
    arch = architecture(config)  # gemma-4-31B-it, from its file
    assert kept(arch) == [("sliding", 50, 16, 256, 1024), ("full", 10, 4, 512, 0)]
    assert (arch.heads, arch.kv_heads, arch.head_dim) == (32, 4, 512)  # of the full layers
    # 50 x 16 x 512 x 2 + 10 x 4 x 1024 x 2 B = 819,200 + 81,920
    assert token_bytes(arch) == 901_120


def test_llama4_attends_within_chunks_but_in_each_fourth_layer() -> None:
    text = {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
            "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
            "num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192, "no_rope_layers": [],
            "num_local_experts": 128, "interleave_moe_layer_step": 2, "max_position_embeddings": 1048576}  # fmt: skip
    config = {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "torch_dtype": "bfloat16",
              "text_config": text, "vision_config": {"model_type": "llama4_vision_model"}}  # fmt: skip
    arch = architecture(config)  # Llama-4-Maverick: experts in each second layer
    assert kept(arch) == [("chunked", 36, 8, 128, 8192), ("full", 12, 8, 128, 0)]
    assert arch.caches[1].layers == tuple(range(3, 48, 4))
    assert (arch.experts, arch.experts_per_token, arch.moe_intermediate_size) == (128, 1, 8192)
    assert (arch.intermediate_size, arch.shared_expert_size) == (16384, 8192)
    assert arch.moe_layers == tuple(range(1, 48, 2))


@pytest.mark.parametrize(
    ("model_type", "name", "extra", "windows", "full"),
    [
        ("cohere2", "Cohere2ForCausalLM", {"sliding_window": 4096}, 24, 8),  # command-r7b: 32 layers, 3 to 1
        ("olmo3", "Olmo3ForCausalLM", {"sliding_window": 4096}, 24, 8),
        ("exaone4", "Exaone4ForCausalLM", {"sliding_window": 4096, "sliding_window_pattern": 4}, 24, 8),
        ("exaone4", "Exaone4ForCausalLM", {"sliding_window": None, "sliding_window_pattern": None}, 0, 32),  # 1.2B
        ("smollm3", "SmolLM3ForCausalLM", {"use_sliding_window": False, "layer_types": [FULL] * 32}, 0, 32),
        ("gemma3_text", "Gemma3ForCausalLM", {"head_dim": 128, "sliding_window_pattern": 8}, 28, 4),
        # Qwen3 with a window in some layers: vLLM gives it to none (vllm/model_executor/models/qwen3.py)
        ("qwen3", "Qwen3ForCausalLM",
         {"head_dim": 128, "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 16}, 0, 32),
        ("qwen2", "Qwen2ForCausalLM",
         {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 0}, 32, 0),
        ("llama", "LlamaForCausalLM", {"layer_types": [SLIDE, FULL] * 16, "sliding_window": 512}, 16, 16),
    ],
)  # fmt: skip
def test_windows_by_family(model_type: str, name: str, extra: dict[str, Any], windows: int, full: int) -> None:
    arch = architecture(language(model_type, name, **sizes(4096, 14336, 32, 32, 8, 256000, 132096)) | extra)
    found = {cache.kind: len(cache.layers) for cache in arch.caches}
    assert found == {kind: n for kind, n in (("sliding", windows), ("full", full)) if n}


# --- latent attention ------------------------------------------------------------------------------------------------

DEEPSEEK = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}


def test_deepseek_v2_keeps_one_latent_vector_a_token() -> None:
    config = language("deepseek_v2", "DeepseekV2ForCausalLM", **sizes(2048, 10944, 27, 16, 16, 102400, 163840),
                      **DEEPSEEK, q_lora_rank=None, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
                      moe_intermediate_size=1408, first_k_dense_replace=1, moe_layer_freq=1)  # fmt: skip
    arch = architecture(config)  # DeepSeek-V2-Lite
    assert arch.caches == (LayerCache("mla", tuple(range(27)), 1, 576, 0),)
    assert (arch.attention, arch.heads, arch.head_dim) == ("mla", 16, 192)
    # 27 x 576 x 2 B = 31,104; logged: 43.61 GiB, 1,505,552 tokens
    assert token_bytes(arch) == 31_104 == pytest.approx(43.61 * GIB / 1_505_552, rel=1e-3)
    assert (arch.experts, arch.experts_per_token, arch.moe_intermediate_size, arch.shared_expert_size) == (
        64, 6, 1408, 2816)  # fmt: skip
    assert arch.moe_layers == tuple(range(1, 27))


V3 = sizes(7168, 18432, 61, 128, 128, 129280, 163840) | DEEPSEEK | {
    "q_lora_rank": 1536, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "moe_layer_freq": 1,
}  # fmt: skip


def test_deepseek_v3_and_kimi_k2() -> None:
    v3 = architecture(language("deepseek_v3", "DeepseekV3ForCausalLM", **V3))
    assert token_bytes(v3) == 61 * 576 * 2 == 70_272  # the 70 KB a token of DeepSeek's report
    assert len(v3.moe_layers) == 58
    kimi = {"num_attention_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1, "vocab_size": 163840}
    k2 = architecture(language("kimi_k2", "DeepseekV3ForCausalLM", **(V3 | kimi)))
    assert (k2.heads, k2.experts, len(k2.moe_layers)) == (64, 384, 60)


def test_deepseek_v32_keeps_an_index_beside_it() -> None:
    config = language("deepseek_v32", "DeepseekV32ForCausalLM", **V3, index_topk=2048, index_head_dim=128)
    latent, index = architecture(config).caches
    assert (latent.head_dim, len(latent.layers)) == (576, 61)
    # 128 keys of 8 bits and one scale of 4 bytes for each 128 of them
    assert index == LayerCache("mla", tuple(range(61)), 1, 132, 0, name="indexer", dtype="uint8")
    assert architecture(config).attention == "mla"
    some = architecture(config | {"index_topk_freq": 4}).caches[1].layers
    # layer n has an index where max(n - 1, 0) is a multiple of 4 (`_skip_topk` in deepseek_v2.py)
    assert some[:5] == (0, 1, 5, 9, 13)


# --- states beside attention -----------------------------------------------------------------------------------------


def test_qwen3_5_keeps_three_states_to_a_full_layer() -> None:
    text = sizes(5120, 17408, 64, 24, 4, 248320, 262144) | {
        "model_type": "qwen3_5_text", "head_dim": 256, "layer_types": (["linear_attention"] * 3 + [FULL]) * 16,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32",
    }  # fmt: skip
    vision = {"model_type": "qwen3_5", "hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "num_heads": 16,
              "patch_size": 16}  # fmt: skip
    config = {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"], "dtype": "bfloat16",
              "tie_word_embeddings": False, "text_config": text, "vision_config": vision}  # fmt: skip
    arch = architecture(config)  # Qwen3.5-27B, from its file
    state, full = arch.caches
    # conv: (2 x 16 x 128 + 48 x 128) channels x 3 = 30,720; recurrent: 48 x 128 x 128 = 786,432 in float32
    assert state.states == (State(30_720), State(786_432, "float32"))
    assert (state.kind, state.name, len(state.layers)) == ("state", "gdn", 48)
    assert (len(full.layers), full.kv_heads, full.head_dim, full.layers[:2]) == (16, 4, 256, (3, 7))
    assert (arch.attention, arch.heads, arch.kv_heads, arch.head_dim) == ("hybrid", 24, 4, 256)
    assert (arch.towers[0].layers, arch.towers[0].hidden_size) == (27, 1152)


def test_qwen3_next_takes_its_interval_where_layers_are_not_listed() -> None:
    config = language("qwen3_next", "Qwen3NextForCausalLM", **sizes(2048, 5120, 48, 16, 2, 151936, 262144),
                      head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32,
                      linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, num_experts=512,
                      num_experts_per_tok=10, moe_intermediate_size=512, shared_expert_intermediate_size=512,
                      decoder_sparse_step=1, mlp_only_layers=[])  # fmt: skip
    arch = architecture(config)  # Qwen3-Next-80B-A3B
    state, full = arch.caches
    # conv: (2 x 16 x 128 + 32 x 128) x 3 = 24,576; recurrent: 32 x 128 x 128 = 524,288, in the model's dtype
    assert state.states == (State(24_576), State(524_288))
    assert (len(state.layers), len(full.layers)) == (36, 12)
    assert (arch.experts, arch.experts_per_token, arch.shared_expert_size, len(arch.moe_layers)) == (512, 10, 512, 48)


def test_granite_hybrid_splits_its_groups_no_further_than_one() -> None:
    kinds = ["attention" if n in (5, 15, 25, 35) else "mamba" for n in range(40)]
    config = language("granitemoehybrid", "GraniteMoeHybridForCausalLM", **sizes(1536, 512, 40, 12, 4, 100352, 131072),
                      layer_types=kinds, mamba_n_heads=48, mamba_d_head=64, mamba_n_groups=1, mamba_d_state=128,
                      mamba_d_conv=4, mamba_expand=2, num_local_experts=64, num_experts_per_tok=6,
                      shared_intermediate_size=1024, tie_word_embeddings=True)  # fmt: skip
    arch = architecture(config)  # granite-4.0-h-tiny
    state, full = arch.caches
    # channels 2 x 1536 = 3072 = 48 x 64; conv: (3072 + 2 x 1 x 128) x 3 = 9,984; recurrent: 48 x 64 x 128 = 393,216
    convolution, recurrent = state.states
    assert (convolution.elements, recurrent.elements) == (9_984, 393_216)
    assert (state.name, full.layers) == ("mamba2", (5, 15, 25, 35))
    # two ranks: half of the 3072 channels each, and the one group of 256 whole: (1536 + 256) x 3 = 5,376
    assert (convolution.on_rank(2), recurrent.on_rank(2)) == (5_376, 196_608)
    assert (arch.intermediate_size, arch.moe_intermediate_size, arch.shared_expert_size) == (1024, 512, 1024)
    dense = architecture(config | {"num_local_experts": 0, "num_experts_per_tok": 0})  # granite-4.0-h-micro and kin
    assert (dense.experts, dense.moe_layers) == (0, ())


def test_nemotron_h_reads_its_blocks_letter_by_letter() -> None:
    # NVIDIA-Nemotron-Nano-9B-v2: 27 Mamba-2, 4 attention, 25 MLP
    pattern = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
    counts = {kind: pattern.count(kind) for kind in "M*-"}
    config = language("nemotron_h", "NemotronHForCausalLM", **sizes(4480, 15680, 56, 40, 8, 131072, 131072),
                      head_dim=128, hybrid_override_pattern=pattern, mamba_num_heads=128, mamba_head_dim=80,
                      n_groups=8, ssm_state_size=128, conv_kernel=4, expand=2)  # fmt: skip
    arch = architecture(config)
    state, full = arch.caches
    assert (len(state.layers), len(full.layers), arch.layers) == (counts["M"], counts["*"], len(pattern))
    # channels 128 x 80 = 10,240; conv: (10,240 + 2 x 8 x 128) x 3 = 36,864; recurrent: 128 x 80 x 128, in float32
    assert [s.elements for s in state.states] == [36_864, 1_310_720]
    assert [s.dtype for s in state.states] == ["", "float32"]  # vllm/model_executor/models/config.py
    assert arch.experts == 0


def test_falcon_h1_has_both_in_every_layer() -> None:
    config = language("falcon_h1", "FalconH1ForCausalLM", **sizes(3072, 12288, 44, 12, 2, 130048, 262144),
                      head_dim=128, mamba_d_ssm=3072, mamba_n_heads=24, mamba_d_head=128, mamba_n_groups=2,
                      mamba_d_state=256, mamba_d_conv=4, mamba_expand=2)  # fmt: skip
    full, state = architecture(config).caches  # Falcon-H1-7B
    assert full.layers == state.layers == tuple(range(44))
    # (3072 + 2 x 2 x 256) x 3 = 12,288; 24 x 128 x 256 = 786,432
    assert [s.elements for s in state.states] == [12_288, 786_432]


def test_jamba_is_mamba1_with_attention_in_each_eighth_layer() -> None:
    config = language("jamba", "JambaForCausalLM", **sizes(4096, 14336, 32, 32, 8, 65536, 262144),
                      attn_layer_period=8, attn_layer_offset=4, expert_layer_period=2, expert_layer_offset=1,
                      num_experts=16, num_experts_per_tok=2, mamba_d_state=16, mamba_d_conv=4,
                      mamba_expand=2)  # fmt: skip
    arch = architecture(config)  # Jamba-v0.1
    state, full = arch.caches
    assert full.layers == (4, 12, 20, 28)
    # channels 2 x 4096 = 8192: conv 8192 x 3, state 8192 x 16
    assert (state.name, [s.elements for s in state.states]) == ("mamba1", [24_576, 131_072])
    assert (arch.experts, arch.moe_layers) == (16, tuple(range(1, 32, 2)))


def test_lfm2_keeps_short_convolutions() -> None:
    full_at = [2, 5, 8, 10, 12, 14]
    config = language("lfm2", "Lfm2ForCausalLM", **sizes(2048, 12288, 16, 32, 8, 65536, 128000), block_ff_dim=12288,
                      conv_dim=2048, conv_L_cache=3, full_attn_idxs=full_at, block_auto_adjust_ff_dim=True,
                      block_multiple_of=256, block_ffn_dim_multiplier=1.0)  # fmt: skip
    arch = architecture(config)  # LFM2-1.2B
    state, full = arch.caches
    assert (state.name, state.states, full.layers) == ("short_conv", (State(2048 * 2),), tuple(full_at))
    assert arch.intermediate_size == 8192  # two thirds of 12,288


def test_bamba_and_zamba2() -> None:
    bamba = language("bamba", "BambaForCausalLM", **sizes(4096, 14336, 32, 32, 8, 128256, 262144),
                     attn_layer_indices=[9, 18, 27], mamba_n_heads=128, mamba_d_head=64, mamba_n_groups=1,
                     mamba_d_state=128, mamba_d_conv=4, mamba_expand=2)  # fmt: skip
    state, full = architecture(bamba).caches  # Bamba-9B
    assert full.layers == (9, 18, 27)
    assert [s.elements for s in state.states] == [(8192 + 256) * 3, 128 * 64 * 128]
    kinds = ["hybrid" if n % 6 == 5 else "mamba" for n in range(36)]
    zamba = language("zamba2", "Zamba2ForCausalLM", **sizes(2560, 10240, 36, 32, 32, 32000, 4096),
                     layers_block_type=kinds, n_mamba_heads=80, mamba_headdim=64, mamba_ngroups=1, mamba_d_state=64,
                     mamba_d_conv=4, mamba_expand=2, attention_head_dim=160)  # fmt: skip
    arch = architecture(zamba)
    state, full = arch.caches
    # attention works on twice the hidden size: 2 x 2560 / 32 = 160; a shared block keeps a cache wherever it is used
    assert (full.head_dim, full.kv_heads, len(full.layers), len(state.layers)) == (160, 32, 6, 36)
    assert [s.elements for s in state.states] == [(5120 + 128) * 3, 80 * 64 * 64]


# --- experts under other names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_type", "name", "keys", "want"),
    [  # want: experts, a token's, intermediate size of one, of the shared ones, layers that have them
        ("mixtral", "MixtralForCausalLM", {"num_local_experts": 8, "num_experts_per_tok": 2}, (8, 2, 8192, 0, 28)),
        ("qwen3_moe", "Qwen3MoeForCausalLM",
         {"num_local_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "head_dim": 128},
         (128, 8, 768, 0, 28)),  # as transformers 5 saves it
        ("glm4_moe", "Glm4MoeForCausalLM",
         {"n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "n_shared_experts": 1,
          "first_k_dense_replace": 1, "head_dim": 128}, (128, 8, 1408, 1408, 27)),
        ("olmoe", "OlmoeForCausalLM", {"num_experts": 64, "num_experts_per_tok": 8}, (64, 8, 8192, 0, 28)),
        # ERNIE-4.5-21B-A3B: layers 1 to the last, two shared experts
        ("ernie4_5_moe", "Ernie4_5_MoeForCausalLM",
         {"moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
          "moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1, "head_dim": 128},
         (64, 6, 1536, 3072, 27)),
        # Hunyuan-A13B: lists say the same for every layer
        ("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM",
         {"num_experts": 64, "moe_topk": [8] * 28, "moe_intermediate_size": [3072] * 28,
          "num_shared_expert": [1] * 28, "use_cla": False, "cla_share_factor": 2}, (64, 8, 3072, 8192, 28)),
        ("minimax_m2", "MiniMaxM2ForCausalLM",
         {"num_local_experts": 256, "num_experts_per_tok": 8, "head_dim": 128}, (256, 8, 8192, 0, 28)),
        ("phimoe", "PhiMoEForCausalLM",
         {"num_local_experts": 16, "num_experts_per_tok": 2, "sliding_window": None}, (16, 2, 8192, 0, 28)),
        ("granitemoe", "GraniteMoeForCausalLM", {"num_local_experts": 40, "num_experts_per_tok": 8},
         (40, 8, 8192, 0, 28)),
        ("lfm2_moe", "Lfm2MoeForCausalLM",
         {"num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792, "num_dense_layers": 2,
          "conv_L_cache": 3}, (32, 4, 1792, 0, 26)),
    ],
)  # fmt: skip
def test_experts(model_type: str, name: str, keys: dict[str, Any], want: tuple[int, ...]) -> None:
    arch = architecture(language(model_type, name, **sizes(4096, 8192, 28, 32, 8, 100000, 131072)) | keys)
    found = (arch.experts, arch.experts_per_token, arch.moe_intermediate_size, arch.shared_expert_size)
    assert (*found, len(arch.moe_layers)) == want


# --- several modalities ----------------------------------------------------------------------------------------------


def test_mistral3_unties_as_its_language_model_does() -> None:
    text = sizes(5120, 32768, 40, 32, 8, 131072, 131072) | {
        "model_type": "mistral", "head_dim": 128, "sliding_window": None}  # fmt: skip
    vision = {"model_type": "pixtral", "hidden_size": 1024, "image_size": 1540, "intermediate_size": 4096,
              "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}  # fmt: skip
    config = {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "dtype": "bfloat16",
              "spatial_merge_size": 2, "text_config": text, "vision_config": vision}  # fmt: skip
    arch = architecture(config)  # Mistral-Small-3.1-24B
    # 40 x 8 x 256 x 2 B = 163,840; logged: 28.19 GiB, 184,752 tokens
    assert token_bytes(arch) == 163_840 == pytest.approx(28.19 * GIB / 184_752, rel=1e-3)
    assert (arch.tie_word_embeddings, arch.attention) == (False, "gqa")
    assert arch.towers[0].tokens == 55 * 55  # 1540 / 14 = 110 patches a side, four in one


def test_granite_vision_is_llava_next_around_granite() -> None:
    text = sizes(2048, 8192, 40, 32, 8, 49156, 131072) | {"model_type": "granite", "tie_word_embeddings": True}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
              "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}  # fmt: skip
    config = {"model_type": "llava_next", "architectures": ["LlavaNextForConditionalGeneration"], "dtype": "bfloat16",
              "image_grid_pinpoints": [[384, 768], [384, 3840], [3840, 384]], "text_config": text,
              "vision_config": vision}  # fmt: skip
    arch = architecture(config)
    # 40 x 8 x 128 x 2 B = 81,920; logged for granite-vision-3.3-2b: 68.65 GiB, 899,792 tokens
    assert token_bytes(arch) == 81_920 == pytest.approx(68.65 * GIB / 899_792, rel=1e-3)
    # 27 x 27 patches of the whole image; ten tiles below each other: 270 rows of 27 and a newline
    assert arch.towers[0].tokens == 27 * 27 + 270 * 28


def test_qwen2_vl_in_its_older_flat_form_and_in_its_newer() -> None:
    flat = language("qwen2_vl", "Qwen2VLForConditionalGeneration", **sizes(3584, 18944, 28, 28, 4, 152064, 32768))
    vision = {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14}
    old = architecture(flat | {"vision_config": vision, "use_sliding_window": False, "sliding_window": 32768,
                               "max_window_layers": 28})  # fmt: skip
    nested = {key: value for key, value in flat.items() if key not in ("model_type", "architectures", "dtype")}
    new = architecture(
        {"model_type": "qwen2_vl", "architectures": flat["architectures"], "dtype": "bfloat16",
         "text_config": nested | {"model_type": "qwen2_vl_text"}, "vision_config": vision}
    )  # fmt: skip
    assert old == new
    (tower,) = old.towers
    assert (tower.hidden_size, tower.intermediate_size, tower.layers) == (1280, 5120, 32)  # its width is embed_dim


def test_llava_15_leaves_its_language_model_to_the_class() -> None:
    text = {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064}
    vision = {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
              "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}  # fmt: skip
    arch = architecture(
        {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "torch_dtype": "float16",
         "text_config": text, "vision_config": vision}
    )  # fmt: skip
    assert (arch.layers, arch.hidden_size, arch.kv_heads, arch.vocab_size) == (32, 4096, 32, 32064)  # Vicuna-7B
    assert (arch.attention, arch.towers[0].tokens) == ("mha", 576)


def test_audio() -> None:
    config = {"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"],
              "torch_dtype": "bfloat16", "audio_config": {"model_type": "qwen2_audio_encoder"},
              "text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032}}  # fmt: skip
    (tower,) = architecture(config).towers
    assert (tower.kind, tower.layers, tower.hidden_size, tower.tokens) == ("audio", 32, 1280, 750)  # 30 s


@pytest.mark.parametrize(
    ("model_type", "name", "vision", "preprocessor", "tokens"),
    [
        # Qwen2-VL-7B: 12,845,056 pixels in units of 2 x 2 patches of 14 pixels
        ("qwen2_vl", "Qwen2VLForConditionalGeneration", {"patch_size": 14}, {"max_pixels": 12_845_056}, 16_384),
        # Qwen3-VL: patches of 16
        ("qwen3_vl", "Qwen3VLForConditionalGeneration", {"patch_size": 16},
         {"size": {"longest_edge": 16_777_216, "shortest_edge": 65_536}}, 16_384),
        ("qwen3_vl", "Qwen3VLForConditionalGeneration", {"patch_size": 16}, {}, 0),
        # Llama 4: 16 tiles and the whole image, 24 x 24 patches each, shrunk to 12 x 12
        ("llama4", "Llama4ForConditionalGeneration", {"image_size": 336, "patch_size": 14}, {"max_patches": 16}, 2_448),
        # InternVL3: 12 tiles and the whole, 256 each
        ("internvl", "InternVLForConditionalGeneration", {"image_size": [448, 448]}, {"max_patches": 12}, 3_328),
        ("gemma4", "Gemma4ForConditionalGeneration", {"default_output_length": 280}, {}, 280),
    ],
)  # fmt: skip
def test_tokens_of_the_largest_image(
    model_type: str, name: str, vision: dict[str, Any], preprocessor: dict[str, Any], tokens: int
) -> None:
    config = {"model_type": model_type, "architectures": [name], "dtype": "bfloat16", "text_config": {},
              "vision_config": vision}  # fmt: skip
    assert architecture(config, preprocessor=preprocessor).towers[0].tokens == tokens


def test_internvl_chat_counts_its_tiles_itself() -> None:
    vision = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
              "image_size": 448, "patch_size": 14}  # fmt: skip
    text = sizes(3584, 18944, 28, 28, 4, 151674, 32768) | {"model_type": "qwen2", "tie_word_embeddings": False}
    arch = architecture(
        {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "torch_dtype": "bfloat16",
         "llm_config": text, "vision_config": vision, "max_dynamic_patch": 12, "downsample_ratio": 0.5}
    )  # fmt: skip
    assert (arch.kv_heads, arch.towers[0].tokens) == (4, 13 * 256)  # InternVL3-8B: 32 x 32 patches, 16 x 16 of them


# --- older families --------------------------------------------------------------------------------------------------


def test_names_of_older_families() -> None:
    gpt2 = architecture(language("gpt2", "GPT2LMHeadModel", n_embd=768, n_layer=12, n_head=12, n_positions=1024,
                                 vocab_size=50257, n_inner=None))  # fmt: skip
    assert (gpt2.hidden_size, gpt2.intermediate_size, gpt2.max_position_embeddings) == (768, 3072, 1024)
    opt = architecture(language("opt", "OPTForCausalLM", hidden_size=768, ffn_dim=3072, num_hidden_layers=12,
                                num_attention_heads=12, vocab_size=50272, max_position_embeddings=2048))  # fmt: skip
    assert (opt.intermediate_size, opt.head_dim, opt.attention) == (3072, 64, "mha")
    shape = {"vocab_size": 65024, "max_position_embeddings": 2048}
    seven = language("falcon", "FalconForCausalLM", hidden_size=4544, num_hidden_layers=32, num_attention_heads=71,
                     num_kv_heads=71, multi_query=True, new_decoder_architecture=False, **shape)  # fmt: skip
    assert (architecture(seven).kv_heads, architecture(seven).attention) == (1, "mqa")  # num_kv_heads is ignored
    forty = language("falcon", "FalconForCausalLM", hidden_size=8192, num_hidden_layers=60, num_attention_heads=128,
                     num_kv_heads=8, multi_query=True, new_decoder_architecture=True, **shape)  # fmt: skip
    assert (architecture(forty).kv_heads, architecture(forty).head_dim) == (8, 64)
    bloom = language("bloom", "BloomForCausalLM", n_embed=4096, n_layer=30, num_attention_heads=32, seq_length=2048,
                     vocab_size=250880)  # fmt: skip
    assert (architecture(bloom).intermediate_size, architecture(bloom).kv_heads) == (16384, 32)


def test_command_r_says_its_length_in_model_max_length() -> None:
    config = language("cohere", "CohereForCausalLM", **sizes(8192, 22528, 40, 64, 64, 256000, 8192))
    assert architecture(config | {"model_max_length": 131072}).max_position_embeddings == 131072
