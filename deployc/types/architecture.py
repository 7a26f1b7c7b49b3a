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
    """One tensor of a state space or linear attention layer, kept once a sequence; divided by tensor parallelism.

    Of its `elements`, `groups` x `group_elements` come in groups that are not split: a rank holds at least one whole
    group, as it does a KV head (vllm/model_executor/layers/mamba/mamba_utils.py, extra_groups_for_head_shards).
    """

    elements: int
    dtype: str = ""  # "float32" …; "" = the model's own
    groups: int = 0
    group_elements: int = 0  # of one group

    def on_rank(self, tensor_parallel_size: int) -> int:
        """Elements that one rank keeps."""
        split = (self.elements - self.groups * self.group_elements) // tensor_parallel_size
        return split + -(-self.groups // tensor_parallel_size) * self.group_elements


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
    name: str = ""  # of the state's kind: "mamba1" | "mamba2" | "gdn" | "short_conv"; of an "mla" one: "indexer" or ""
    dtype: str = ""  # that the engine always keeps it in: "uint8" of an indexer; "" = kv_cache_dtype


@dataclass(frozen=True, slots=True)
class Tower:
    """A vision or audio encoder beside the language model. 0 = config.json does not say."""

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
    """Read from config.json; never defaulted where the config is silent.

    `heads`, `kv_heads` and `head_dim` are those of the ordinary full attention layer; what others have stands in
    `caches`. Of a model with several modalities these are the language model's dimensions.
    """

    name: str  # config.json architectures[0]
    model_type: str  # of the whole; `text` is the nested language model's own
    layers: int
    hidden_size: int
    intermediate_size: int  # of a dense layer's MLP; of the widest where they differ
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
    moe_intermediate_size: int = 0  # of one routed expert
    moe_layers: tuple[int, ...] = ()  # the numbers of those that have experts
    shared_expert_size: int = 0  # of all experts together that every token takes; 0 = none
    towers: tuple[Tower, ...] = ()
    assumed: tuple[str, ...] = ()  # what `--assume` put in place of what is not known, in words
    rope: Mapping[str, Any] = field(default_factory=dict)  # rope_scaling / rope_parameters as in config.json
    text: str = ""  # model_type of the language model nested in the whole; "" = the model is the language model
