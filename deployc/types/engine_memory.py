"""How one version of the engine spends memory, where versions differ: read from `profiles/engines/memory.json`."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.types.engine_kv import EngineKv
from deployc.types.figure import Factor


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Behaviours that the memory model depends on, each with its source in the file they are read from."""

    compile_tables: Factor  # embedding tables that are there once more while a cold compile cache is filled
    sampler_copies_v1: Factor  # float32 copies of [max_num_seqs, vocabulary] beside the logits, by model runner
    sampler_copies_v2: Factor
    sampler_buffer_v1: Factor  # rows of [vocabulary] in float32 that its kernel keeps, at most one a sequence
    sampler_state_v2: Factor  # B an element of [max_num_seqs, vocabulary]: kept all along, and counted
    encoder_profiled_v2: bool  # whether the second runner profiles images; the first always does
    activation_fixed: Factor  # B, beside all that is counted
    non_torch_single: Factor  # B, one card
    non_torch_parallel: Factor  # B a card of several that share every layer, over NVLink
    non_torch_pcie: Factor  # the same over PCIe
    non_torch_pipeline: Factor  # B a card of several that hold a stage each
    graphs_twice: bool  # whether each CUDA graph is captured with adapters and once more without, where they are served
    load_unsplit_from: int  # bytes: while weights load, a block at least so large keeps its segment; 0 = it is split
    mrope_factor_qwen3: int  # rows of a rotary table of three axes for each position, Qwen3-VL and Qwen3.5
    latent_copies: bool  # MLA: the 16-bit kv_b_proj is there a second time
    mxfp4_scales_stay: bool  # Triton's experts on Hopper: the scales as loaded stay beside their new layout
    state_prefix_caching: bool  # whether models with state layers keep equal prefixes by default
    kv: EngineKv  # how it forms the KV cache
