"""The families whose attention, experts and states are known here: a row for each model_type.

Known are those that vLLM serves (vllm/model_executor/models/registry.py, 0.33.0) and people fine-tune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from deployc.facts.architecture import experts, heads, latent, layers, states, widths
from deployc.facts.architecture.experts import Moe
from deployc.facts.architecture.heads import Heads
from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.layers import Caches


@dataclass(frozen=True, slots=True)
class Family:
    """One model_type of a language model."""

    name: str  # its class in `architectures`
    caches: Caches = layers.uniform
    heads: Callable[[Keys], Heads] = heads.plain
    moe: Moe | None = None
    width: Callable[[Keys], int] = widths.plain  # intermediate size of a dense MLP
    depth: Callable[[Keys], int] = widths.depth  # number of layers
    names: Mapping[str, str] = field(default_factory=dict)  # usual name of a key -> this family's
    knows: tuple[str, ...] = ()  # keys that change what layers keep, and that `caches` reads
    like: str = ""  # model_type of whose configuration class the defaults are; "" = its own


MLA = ("kv_lora_rank",)
GDN = ("linear_num_value_heads",)
MAMBA = ("mamba_d_state", "ssm_state_size")

LLAMA_LIKE: Mapping[str, Family] = {
    "llama": Family("LlamaForCausalLM", layers.listed),
    "mistral": Family("MistralForCausalLM", layers.listed),
    "ministral": Family("MinistralForCausalLM", layers.listed),
    "ministral3": Family("Ministral3ForCausalLM", layers.listed),
    "qwen2": Family("Qwen2ForCausalLM", layers.switched),
    "qwen3": Family("Qwen3ForCausalLM", layers.ignoring),
    "phi": Family("PhiForCausalLM"),
    "phi3": Family("Phi3ForCausalLM"),
    "granite": Family("GraniteForCausalLM", layers.listed),
    "granite_swa": Family("GraniteSWAForCausalLM", layers.listed),
    "smollm3": Family("SmolLM3ForCausalLM", layers.smollm3),
    "gemma": Family("GemmaForCausalLM"),
    "olmo": Family("OlmoForCausalLM"),
    "olmo2": Family("Olmo2ForCausalLM"),
    "starcoder2": Family("Starcoder2ForCausalLM"),
    "stablelm": Family("StableLmForCausalLM"),
    "cohere": Family("CohereForCausalLM"),
    "glm": Family("GlmForCausalLM"),
    "glm4": Family("Glm4ForCausalLM"),
    "glm4v_text": Family("Glm4ForCausalLM"),
    "nemotron": Family("NemotronForCausalLM"),
    "seed_oss": Family("SeedOssForCausalLM"),
    "ernie4_5": Family("Ernie4_5ForCausalLM"),
    "hunyuan_v1_dense": Family("HunYuanDenseV1ForCausalLM"),
    "arcee": Family("ArceeForCausalLM"),
    "apertus": Family("ApertusForCausalLM"),
    "helium": Family("HeliumForCausalLM"),
    "internlm2": Family("InternLM2ForCausalLM"),
    "internlm3": Family("InternLM3ForCausalLM"),
    "qwen2_vl_text": Family("Qwen2ForCausalLM", layers.switched),
    "qwen2_5_vl_text": Family("Qwen2ForCausalLM", layers.switched),
    "qwen3_vl_text": Family("Qwen3ForCausalLM", layers.ignoring),
}
"""Keys named as in Llama; most keep K and V of every token in every layer."""

OLDER: Mapping[str, Family] = {
    "gpt2": Family("GPT2LMHeadModel", width=widths.four_times),
    "gpt_bigcode": Family("GPTBigCodeForCausalLM", heads=heads.falcon, width=widths.four_times),
    "gpt_neox": Family("GPTNeoXForCausalLM"),
    "opt": Family("OPTForCausalLM"),
    "bloom": Family("BloomForCausalLM", width=widths.four_times),
    "falcon": Family("FalconForCausalLM", heads=heads.falcon, width=widths.four_times),
}
"""Keys named in their own ways."""

WINDOWED: Mapping[str, Family] = {
    "gemma2": Family("Gemma2ForCausalLM", layers.every(2)),
    "gemma3_text": Family("Gemma3ForCausalLM", layers.every(6, "sliding_window_pattern")),
    "gemma3n_text": Family(
        "Gemma3nForCausalLM", layers.gemma3n, width=widths.widest, knows=("num_kv_shared_layers",)
    ),
    "gemma4_text": Family(
        "Gemma4ForCausalLM",
        layers.gemma4,
        heads.gemma4,
        Moe(optional=True),
        width=widths.gemma4,
        knows=("num_kv_shared_layers", "global_head_dim", "num_global_key_value_heads", "per_layer_config"),
    ),
    "cohere2": Family("Cohere2ForCausalLM", layers.every(4, "sliding_window_pattern")),
    "olmo3": Family("Olmo3ForCausalLM", layers.every(4)),
    "exaone4": Family("Exaone4ForCausalLM", layers.exaone4),
}  # fmt: skip
"""Dense, with layers that look at a window beside those that look at everything."""

_SHARED = experts.counted("n_shared_experts")
_DEEPSEEK = Moe(layers=experts.after_first, shared=_SHARED)
_QWEN = Moe(layers=experts.sparse_steps, shared=experts.named("shared_expert_intermediate_size"))
_MIXTRAL = Moe("intermediate_size")

SPARSE: Mapping[str, Family] = {
    "mixtral": Family("MixtralForCausalLM", layers.listed, moe=_MIXTRAL),
    "phimoe": Family("PhiMoEForCausalLM", moe=_MIXTRAL),
    "minimax_m2": Family("MiniMaxM2ForCausalLM", moe=_MIXTRAL),
    "granitemoe": Family("GraniteMoeForCausalLM", moe=_MIXTRAL),
    "granitemoeshared": Family(
        "GraniteMoeSharedForCausalLM",
        moe=Moe("intermediate_size", shared=experts.named("shared_intermediate_size")),
    ),
    "gpt_oss": Family("GptOssForCausalLM", layers.alternating, moe=_MIXTRAL),
    "granitemoe_swa": Family(
        "GraniteMoeSWAForCausalLM",
        layers.listed,
        moe=Moe("intermediate_size", shared=experts.named("shared_intermediate_size")),
    ),
    "flex_olmo": Family("FlexOlmoForCausalLM", moe=Moe("intermediate_size")),
    "exaone_moe": Family(
        "ExaoneMoeForCausalLM",
        layers.exaone4,
        moe=Moe(layers=experts.listed_or_after_first, shared=experts.counted("num_shared_experts")),
    ),
    "olmoe": Family("OlmoeForCausalLM", moe=Moe("intermediate_size")),
    "qwen2_moe": Family("Qwen2MoeForCausalLM", layers.switched, moe=_QWEN),
    "qwen3_moe": Family("Qwen3MoeForCausalLM", layers.ignoring, moe=Moe(layers=experts.sparse_steps)),
    "qwen3_vl_moe_text": Family("Qwen3MoeForCausalLM", layers.ignoring, moe=Moe(layers=experts.sparse_steps)),
    "glm4_moe": Family("Glm4MoeForCausalLM", moe=_DEEPSEEK),
    "glm4v_moe_text": Family("Glm4MoeForCausalLM", moe=_DEEPSEEK),
    "dots1": Family("Dots1ForCausalLM", layers.ignoring, moe=_DEEPSEEK),
    "llama4_text": Family(
        "Llama4ForCausalLM",
        layers.llama4,
        moe=Moe("intermediate_size", layers=experts.interleaved, shared=experts.one),
        width=widths.llama4,
        knows=("attention_chunk_size",),
    ),
    "ernie4_5_moe": Family(
        "Ernie4_5_MoeForCausalLM",
        moe=Moe(layers=experts.ernie, shared=experts.counted("moe_num_shared_experts")),
    ),
    "hunyuan_v1_moe": Family(
        "HunYuanMoEV1ForCausalLM",
        moe=Moe(wide=experts.hunyuan, shared=experts.hunyuan_shared),
    ),
    "deepseek_v2": Family("DeepseekV2ForCausalLM", latent.latent, heads.latent, _DEEPSEEK, knows=MLA),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", latent.latent, heads.latent, _DEEPSEEK, knows=MLA),
    "kimi_k2": Family("DeepseekV3ForCausalLM", latent.latent, heads.latent, _DEEPSEEK, knows=MLA, like="deepseek_v3"),
    "deepseek_v32": Family(
        "DeepseekV32ForCausalLM", latent.indexed, heads.latent, _DEEPSEEK, knows=(*MLA, "index_topk")
    ),
    "glm4_moe_lite": Family(
        "Glm4MoeLiteForCausalLM",
        latent.latent,
        heads.latent,
        Moe(layers=experts.listed_or_after_first, shared=_SHARED),
        knows=MLA,
    ),
    "glm_moe_dsa": Family(
        "GlmMoeDsaForCausalLM",
        latent.indexed,
        heads.latent,
        Moe(layers=experts.listed_or_after_first, shared=_SHARED),
        knows=(*MLA, "index_topk"),
    ),
}  # fmt: skip
"""Mixtures of experts, some of them with latent attention."""

_QWEN_NEXT = Moe(layers=experts.sparse_steps, shared=experts.named("shared_expert_intermediate_size"))
_NEMOTRON_H = {
    "mamba_n_heads": "mamba_num_heads", "mamba_d_head": "mamba_head_dim", "mamba_n_groups": "n_groups",
    "mamba_d_state": "ssm_state_size", "mamba_d_conv": "conv_kernel",
}  # fmt: skip
_ZAMBA2 = {"mamba_n_heads": "n_mamba_heads", "mamba_n_groups": "mamba_ngroups", "mamba_d_head": "mamba_headdim"}

HYBRID: Mapping[str, Family] = {
    "qwen3_next": Family("Qwen3NextForCausalLM", states.gated_delta_net, moe=_QWEN_NEXT, knows=GDN),
    "qwen3_5_text": Family("Qwen3_5ForCausalLM", states.gated_delta_net, knows=GDN),
    "qwen3_5_moe_text": Family(
        "Qwen3_5MoeForCausalLM",
        states.gated_delta_net,
        moe=Moe(shared=experts.named("shared_expert_intermediate_size")),
        width=widths.of_experts,
        knows=GDN,
    ),
    "granitemoehybrid": Family(
        "GraniteMoeHybridForCausalLM",
        states.granite_hybrid,
        moe=Moe("intermediate_size", shared=experts.named("shared_intermediate_size"), optional=True),
        width=widths.granite_hybrid,
        knows=MAMBA,
    ),
    "bamba": Family("BambaForCausalLM", states.bamba, knows=MAMBA),
    "falcon_h1": Family("FalconH1ForCausalLM", states.falcon_h1, knows=MAMBA),
    "jamba": Family(
        "JambaForCausalLM",
        states.jamba,
        moe=Moe("intermediate_size", layers=experts.jamba, optional=True),
        knows=(*MAMBA, "attn_layer_period"),
    ),
    "nemotron_h": Family(
        "NemotronHForCausalLM",
        states.nemotron_h,
        moe=Moe(layers=experts.nemotron, shared=experts.nemotron_shared, optional=True),
        depth=lambda keys: len(states.nemotron_blocks(keys)),
        names=_NEMOTRON_H,
        knows=MAMBA,
    ),
    "lfm2": Family("Lfm2ForCausalLM", states.lfm2, width=widths.lfm2),
    "lfm2_moe": Family("Lfm2MoeForCausalLM", states.lfm2, moe=Moe(layers=experts.after_dense)),
    "zamba2": Family(
        "Zamba2ForCausalLM", states.zamba2, heads.zamba2, width=widths.four_times, names=_ZAMBA2, knows=MAMBA
    ),
}  # fmt: skip
"""Attention beside layers that keep a state of fixed size."""

FAMILIES: Mapping[str, Family] = {**LLAMA_LIKE, **OLDER, **WINDOWED, **SPARSE, **HYBRID}
