"""The tables of cosines and sines that rotary embeddings hold on every rank: one for each distinct embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.types.choices import Choices
from deployc.types.facts import Facts

WITHOUT = ("gpt2", "opt", "bloom", "mpt", "gpt_bigcode", "jamba", "mamba", "mamba2", "falcon_mamba", "nemotron_h")
"""model_types without rotary embeddings: learned positions, ALiBi, or none (vllm/model_executor/models/*.py)."""
TWO_KINDS = ("gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text")
"""Sliding and full attention rotate by different frequencies: two tables (models/gemma3.py, gemma4.py)."""
QWEN3 = ("qwen3_vl", "qwen3_5")
WIDE = ("gpt_oss",)
"""get_rope(dtype=torch.float32): models/gpt_oss.py."""


def rotary_tables(facts: Facts, choices: Choices) -> list[int]:
    """Bytes of each table [positions, rotated dimensions]: cosines beside sines.

    vllm/model_executor/layers/rotary_embedding/{base,yarn_scaling_rope,linear_scaling_rope,mrope,
    phi3_long_rope_scaled_rope,deepseek_scaling_rope}.py (0.25.1). DeepSeek's YaRN keeps float32 where FlashInfer is
    installed, as in the images; the others are in the served dtype.
    """
    arch, text = facts.model.architecture, facts.model.language_config
    kinds = {(c.kind, _rotated(c.head_dim, text, arch.rope)) for c in arch.caches if c.kind != "state"}
    if arch.model_type in WITHOUT or not kinds:
        return []
    scaling = str(arch.rope.get("rope_type", "default"))
    latent = any(kind == "mla" for kind, _ in kinds)
    factor = facts.calibration.memory.mrope_factor_qwen3 if arch.model_type.startswith(QWEN3) else 4
    positions = _positions(arch.max_position_embeddings, arch.rope, latent) * (factor if _is_mrope(arch.rope) else 1)
    wide = arch.model_type in WIDE or (latent and "yarn" in scaling) or choices.dtype.value == "float32"
    if latent:
        sizes = [int(text["qk_rope_head_dim"])]
    elif arch.model_type in TWO_KINDS:  # only full attention is scaled
        plain = arch.max_position_embeddings
        return [size * (plain if kind == "sliding" else positions) * (4 if wide else 2) for kind, size in sorted(kinds)]
    else:
        sizes = sorted({size for _, size in kinds})
    return [positions * size * (4 if wide else 2) for size in sizes]


def _rotated(head_dim: int, text: Mapping[str, Any], rope: Mapping[str, Any]) -> int:
    """Of the head dimension the share that is rotated."""
    share = rope.get("partial_rotary_factor", text.get("partial_rotary_factor", text.get("rotary_pct", 1.0)))
    return int(head_dim * share) if isinstance(share, int | float) and 0 < share <= 1 else head_dim


def _is_mrope(rope: Mapping[str, Any]) -> bool:
    """Three axes of positions, whose numbers may pass the model's own (mrope.py)."""
    return "mrope_section" in rope


def _positions(own: int, rope: Mapping[str, Any], latent: bool) -> int:
    """Rows of the table: what each kind of scaling computes in advance."""
    scaling = str(rope.get("rope_type", "default"))
    factor = float(rope.get("factor") or 1.0)
    original = int(rope.get("original_max_position_embeddings") or own)
    if scaling == "longrope":
        return original + own
    if scaling == "yarn" or (latent and scaling != "default"):
        return int(original * factor)
    return int(own * factor) if scaling == "linear" else own
