"""What absent keys mean: profiles/models/classes.json is what the installed transformers documents.

DEPLOYC_UPDATE=1 writes the file anew.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import pytest

from deployc.data import profiles
from deployc.facts.architecture import FAMILIES, WHOLES
from deployc.facts.architecture.classes import defaults

READ = """
    attention_chunk_size attention_k_eq_v attn_layer_indices attn_layer_offset attn_layer_period
    audio_soft_tokens_per_image block_auto_adjust_ff_dim block_ffn_dim_multiplier block_multiple_of
    conf_num_attention_heads conf_num_hidden_layers conv_L_cache conv_kernel d_model decoder_sparse_step
    default_output_length depth embed_dim encoder_attention_heads encoder_ffn_dim encoder_layers expert_layer_offset
    expert_layer_period ffn_dim ffn_hidden_size first_k_dense_replace head_dim hidden_size image_seq_length
    image_size index_head_dim interleave_moe_layer_step intermediate_size intermediate_size_mlp kv_lora_rank
    linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads linear_value_head_dim
    mamba_d_conv mamba_d_head mamba_d_ssm mamba_d_state mamba_expand mamba_head_dim mamba_n_groups mamba_n_heads
    mamba_ngroups mamba_num_heads mamba_ssm_cache_dtype max_position_embeddings max_source_positions
    max_window_layers mlp_ratio mm_tokens_per_image moe_intermediate_size moe_k moe_layer_end_index
    moe_layer_interval moe_layer_start_index moe_num_experts moe_num_shared_experts
    moe_shared_expert_intermediate_size moe_topk multi_query n_embd n_groups n_head n_inner n_layer n_mamba_heads
    n_positions n_routed_experts n_shared_experts new_decoder_architecture no_rope_layer_interval
    num_attention_heads num_dense_layers num_experts num_experts_per_tok num_heads num_hidden_layers
    num_key_value_heads num_kv_heads num_kv_shared_layers num_local_experts patch_size pixel_shuffle_ratio
    qk_nope_head_dim qk_rope_head_dim shared_expert_intermediate_size shared_intermediate_size sliding_window
    sliding_window_pattern spatial_merge_size ssm_state_size tie_word_embeddings top_k_experts use_double_wide_mlp
    use_sliding_window vision_soft_tokens_per_image vocab_size
""".split()  # noqa: SIM905


def classes() -> dict[str, Any]:
    """The configuration class of every model_type that the tables name, as far as transformers has one."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: dict[str, Any] = {}
    wanted = {*FAMILIES, *WHOLES, *(family.like for family in FAMILIES.values() if family.like)}
    for model_type, whole in WHOLES.items():
        wanted |= {whole.vision, whole.audio}
        if model_type in CONFIG_MAPPING:
            parts = CONFIG_MAPPING[model_type].sub_configs.values()
            found |= {part.model_type: part for part in parts if getattr(part, "model_type", "")}
    named = {name: CONFIG_MAPPING[name] for name in wanted if name in CONFIG_MAPPING}
    return {name: kind for name, kind in (found | named).items() if name in wanted}


def documented(kind: Any) -> dict[str, Any]:
    found = {}
    for field in dataclasses.fields(kind):
        value = field.default
        if field.name in READ and value is not dataclasses.MISSING:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def test_what_absent_keys_mean_is_what_transformers_documents() -> None:
    transformers = pytest.importorskip("transformers")
    now = {name: documented(kind) for name, kind in sorted(classes().items())}
    path = profiles() / "models" / "classes.json"
    if os.environ.get("DEPLOYC_UPDATE"):
        head = {
            "basis": "derived",
            "source": f"transformers {transformers.__version__}, class defaults of configuration_<model>.py",
        }
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(keys, sort_keys=True)}" for name, keys in now.items())
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        path.write_text("{\n" + ",\n".join([*lines, '"classes": {\n' + rows + "\n}"]) + "\n}\n", encoding="utf-8")
    held = json.loads(path.read_text(encoding="utf-8"))
    if transformers.__version__ not in held["source"]:
        pytest.skip("another transformers than the table was read from")
    assert held["classes"] == now


def test_every_nested_language_model_and_tower_has_a_class_or_documents_nothing() -> None:
    """A model_type without a class leaves every dimension to the file: only these do."""
    nested = {part for whole in WHOLES.values() for part in (whole.text, whole.vision, whole.audio) if part}
    assert {name for name in nested if not defaults(name)} == {"intern_vit_6b"}
    assert {name for name in FAMILIES if not defaults(name)} == {"internlm2", "kimi_k2"}
