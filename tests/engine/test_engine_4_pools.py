"""The KV cache that real engines lay out, for each kind of attention, against the prediction; one process for all.

The demo's own model at three lengths and two sizes of the pool, then small models with weights of no meaning, one for
each kind of attention that the engine serves on a CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import HOST, choices_of, facts_of
from engine_fixtures import Serving
from real_engine import EXAMPLE, engine

from deployc.cost.kv_cache import layout
from deployc.facts.calibration import calibration
from deployc.facts.engine import load
from deployc.types.facts import Facts

pytestmark = pytest.mark.engine

GIB = 2**30
VERSION = "0.32.0"
DEMO = [(512, 1), (2048, 2), (8192, 1), (8192, 2)]
"""max_model_len and GiB of the pool."""
BASE: dict[str, Any] = {
    "torch_dtype": "bfloat16", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True, "rope_theta": 10000.0, "hidden_act": "silu",
}  # fmt: skip
GEMMA = {"head_dim": 64, "sliding_window": 512, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 64}
KINDS: dict[str, dict[str, Any]] = {
    "window": BASE | {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 64,
                      "sliding_window": 512},
    "every second layer a window": BASE | GEMMA | {
        "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "num_hidden_layers": 6,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "five windows to one, unevenly": BASE | GEMMA | {
        "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": 14,
        "sliding_window_pattern": 6, "rope_local_base_freq": 10000.0},
    "latent": BASE | {
        "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "num_key_value_heads": 4,
        "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
        "routed_scaling_factor": 1.0, "scoring_func": "softmax", "norm_topk_prob": False},
    "three gated delta nets to one": BASE | {
        "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "num_hidden_layers": 8, "head_dim": 64,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
        "linear_conv_kernel_dim": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 128, "decoder_sparse_step": 1, "norm_topk_prob": True,
        "mlp_only_layers": [], "full_attention_interval": 4, "partial_rotary_factor": 0.25,
        "mamba_ssm_dtype": "float32"},
    "Mamba beside attention in each layer": BASE | {
        "architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "head_dim": 64, "mamba_n_heads": 8,
        "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2,
        "mamba_chunk_size": 256, "mamba_d_ssm": 512, "mamba_ssm_cache_dtype": "float32"},
}  # fmt: skip
"""Recurrent states in float32, which the CPU engine chooses by itself only where the host has AVX-512 BF16, and latents
by the kernel with blocks of 16, which it chooses only where the host has no AMX (vllm/platforms/cpu.py, 0.32.0)."""


def facts(config: dict[str, Any]) -> Facts:
    shipped = load(VERSION)
    return replace(facts_of(config, (HOST,)), engine=shipped, calibration=calibration(VERSION))


@pytest.fixture(scope="module")
def pools(serving: Serving, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the engines made, by name. `serving` has the demo's model made and the engine environment there."""
    assert serving.made.folder.is_dir()
    folder = tmp_path_factory.mktemp("kinds")
    demo = str(EXAMPLE / "work" / "smollm2-135m-instruct")
    asked = [{"name": f"{length} {space}", "space": space, "arguments": {"model": demo, "max_model_len": length}}
             for length, space in DEMO]  # fmt: skip
    for name, config in KINDS.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
        given = {"model": str(folder / name), "max_model_len": 4096, "max_num_batched_tokens": 2048,
                 "load_format": "dummy", "skip_tokenizer_init": True}  # fmt: skip
        if config.keys() & {"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}:
            given["mamba_ssm_cache_dtype"] = "float32"
        if "kv_lora_rank" in config:
            given["attention_backend"] = "CPU_MLA"
        asked.append({"name": name, "space": 1, "arguments": given})
    script, prefix = Path(__file__).with_name("kv_pools.py"), engine()
    assert prefix is not None
    done = subprocess.run(
        [str(prefix / "bin" / "python"), str(script)], input=json.dumps(asked), capture_output=True, text=True,
        timeout=900, env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
    )  # fmt: skip
    made = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert list(made) == [one["name"] for one in asked], done.stderr[-3000:]
    return made


@pytest.mark.parametrize(("length", "space"), DEMO)
def test_the_demo_at_other_lengths_and_pools(length: int, space: int, pools: Any) -> None:
    config = json.loads((EXAMPLE / "work" / "smollm2-135m-instruct" / "config.json").read_text())
    compare(config, pools[f"{length} {space}"], space, max_model_len=length)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_attention(kind: str, pools: Any) -> None:
    compare(KINDS[kind], pools[kind], 1, max_model_len=4096)


def compare(config: dict[str, Any], seen: dict[str, Any], space: int, **asked: int) -> None:
    """Blocks, bytes of a block, tokens a block and the most requests at once are the engine's own."""
    choices = choices_of(max_num_batched_tokens=2048, max_num_seqs=2, enforce_eager=True, **asked)
    made = layout(facts(config), choices)
    assert made.blocks(space * GIB) == seen["blocks"]
    assert (made.block_bytes, made.block_size, len(made.groups)) == (
        seen["block_bytes"], seen["block_size"], seen["groups"])  # fmt: skip
    assert made.concurrency(space * GIB) == pytest.approx(seen["concurrency"], rel=1e-9)
