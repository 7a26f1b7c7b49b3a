"""The dimensions of a model that the cost model needs, and what each of its layers keeps of the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

AttentionKind = Literal["mha", "gqa", "mqa", "mla", "hybrid"]
"""In a word: heads that share keys and values or not, latent (MLA), or "hybrid": layers of several kinds."""

CacheKind = Literal["full", "sliding", "chunked", "mla", "state"]
"""What a layer keeps: K and V of every token, of a window, of a chunk; one latent vector a token; a fixed state."""


@dataclass(frozen=True, slots=True)
class State:
    """One tensor of a state space or linear attention layer, kept once a sequence; divided by tensor parallelism."""

    elements: int
    dtype: str = ""  # "float32" …; "" = the model's own


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What some layers keep of the past, all of them alike. A layer that reads another one's cache is in none."""

    kind: CacheKind
    layers: tuple[int, ...]  # their numbers, ascending
    kv_heads: int = 0  # before tensor parallelism; 1 for "mla"
    head_dim: int = 0  # of a key; "mla": kv_lora_rank + qk_rope_head_dim
    head_dim_v: int = 0  # of a value; 0 for "mla"
    window: int = 0  # tokens, of "sliding" and "chunked"
    states: tuple[State, ...] = ()  # of "state"
    name: str = ""  # of the state's kind as the engine names it: "mamba1" | "mamba2" | "gdn" | "short_conv" …


@dataclass(frozen=True, slots=True)
class Tower:
    """A vision or audio encoder beside the language model."""

    kind: Literal["vision", "audio"]
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    patch_size: int = 0  # pixels
    image_size: int = 0  # pixels a side of the largest image; 0 = any
    tokens: int = 0  # embeddings that the largest item gives the language model; 0 = not known


@dataclass(frozen=True, slots=True)
class Architecture:
    """Read from config.json; never defaulted where the config is silent."""

    name: str  # config.json architectures[0]
    model_type: str
    layers: int
    hidden_size: int
    intermediate_size: int
    attention: AttentionKind
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    dtype: str  # "bfloat16" | "float16" | "float32", of the checkpoint
    caches: tuple[LayerCache, ...]
    experts: int = 0
    experts_per_token: int = 0
    moe_intermediate_size: int = 0
    towers: tuple[Tower, ...] = ()
    assumed: tuple[str, ...] = ()  # what `--assume` put in place of what is not known, in words
    rope: Mapping[str, Any] = field(default_factory=dict)  # rope_scaling / rope_parameters as in config.json
