"""What linear attention and state space layers keep of a sequence, whatever its length.

Shapes and dtypes: vllm/model_executor/layers/mamba/mamba_utils.py (MambaStateShapeCalculator, MambaStateDtype…) and
get_mamba_state_shape_from_config of each model; 0.33.0. The convolution is kept in the model's dtype; the recurrent
state too, unless the config names `mamba_ssm_dtype` (Qwen3.5) or `mamba_ssm_cache_dtype` (Nemotron-H, else float32:
vllm/model_executor/models/config.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from deployc.facts import faults
from deployc.facts.architecture.heads import Heads
from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.layers import FULL, LINEAR, Kept, every_kinds, full_cache
from deployc.types.architecture import LayerCache, State

_DTYPES = ("float32", "float16", "bfloat16")
_WORDS = {"mamba": LINEAR, "mamba2": LINEAR, "conv": LINEAR, "attention": FULL}
"""Older and newer words for the kind of a layer (transformers remaps them: remap_legacy_layer_types)."""


def gated_delta_net(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Qwen3-Next, Qwen3.5: each `full_attention_interval`-th layer is full attention, the others gated delta nets."""
    key_heads, value_heads = keys.size("linear_num_key_heads"), keys.size("linear_num_value_heads")
    key_dim, value_dim = keys.size("linear_key_head_dim"), keys.size("linear_value_head_dim")
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    convolution = State(channels * (keys.size("linear_conv_kernel_dim") - 1))
    recurrent = State(value_heads * value_dim * key_dim, _dtype(keys, "mamba_ssm_dtype"))
    state = LayerCache("state", (), states=(convolution, recurrent), name="gdn")
    return _mixed(every_kinds(keys, layers, 4, "full_attention_interval", LINEAR), heads, state)


def granite_hybrid(keys: Keys, heads: Heads, layers: int) -> Kept:
    """`layer_types`, in older files `layers_block_type`; absent in both, all are Mamba (GraniteMoeHybridConfig)."""
    return _mixed(_words(keys, layers) or [LINEAR] * layers, heads, mamba2(keys))


def bamba(keys: Keys, heads: Heads, layers: int) -> Kept:
    """`attn_layer_indices` are full attention, the others Mamba-2."""
    full = keys.numbers("attn_layer_indices")
    return _mixed([FULL if layer in full else LINEAR for layer in range(layers)], heads, mamba2(keys))


def falcon_h1(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Every layer has attention and Mamba-2 side by side (vllm/model_executor/models/falcon_h1.py)."""
    state = mamba2(keys)
    for layer in range(layers):
        yield layer, full_cache(heads)
        yield layer, state


def zamba2(keys: Keys, heads: Heads, layers: int) -> Kept:
    """All layers have a Mamba-2 state; those of kind "hybrid" keep K and V as well (zamba2.py)."""
    kinds = keys.kinds("layers_block_type", layers)
    if kinds is None:
        raise faults.bad_dimension(keys.shown("layers_block_type"), "it is not there.")
    if other := sorted(set(kinds) - {"hybrid", "mamba", LINEAR}):
        raise faults.unsupported(keys.shown("layers_block_type"), f"layers of kind {', '.join(other)}.")
    state = mamba2(keys)
    for layer, kind in enumerate(kinds):
        if kind == "hybrid":
            yield layer, full_cache(heads)
        yield layer, state


def jamba(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Each `attn_layer_period`-th layer from `attn_layer_offset` on is full attention, the others Mamba-1."""
    period, offset = keys.size("attn_layer_period"), keys.option("attn_layer_offset")
    inner = keys.size("mamba_expand") * keys.size("hidden_size")
    states = (State(inner * (keys.size("mamba_d_conv") - 1)), State(inner * keys.size("mamba_d_state")))
    state = LayerCache("state", (), states=states, name="mamba1")
    return _mixed([FULL if layer % period == offset else LINEAR for layer in range(layers)], heads, state)


def lfm2(keys: Keys, heads: Heads, layers: int) -> Kept:
    """`layer_types`, in older files `full_attn_idxs`: full attention; the others are short convolutions.

    Without either all layers are full attention (Lfm2Config.__post_init__).
    """
    kinds = _words(keys, layers)
    if kinds is None and keys.get("full_attn_idxs") is not None:
        full = keys.numbers("full_attn_idxs")
        kinds = [FULL if layer in full else LINEAR for layer in range(layers)]
    channels = keys.size_or("conv_dim", keys.size("hidden_size"))
    states = (State(channels * (keys.size("conv_L_cache") - 1)),)
    return _mixed(kinds or [FULL] * layers, heads, LayerCache("state", (), states=states, name="short_conv"))


NEMOTRON_BLOCKS: Mapping[str, str] = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}
"""Letters of `hybrid_override_pattern` (NemotronHConfig)."""


def nemotron_blocks(keys: Keys) -> list[str]:
    """The kind of every block, from `layers_block_type` or the older `hybrid_override_pattern`. Raises Fault."""
    listed, pattern = keys.get("layers_block_type"), keys.get("hybrid_override_pattern")
    if listed is None and pattern is None:
        raise faults.bad_dimension(keys.shown("hybrid_override_pattern"), "it is not there.")
    key = "hybrid_override_pattern" if listed is None else "layers_block_type"
    listed = list(pattern) if listed is None and isinstance(pattern, str) else listed
    if not isinstance(listed, list) or not 0 < len(listed) <= 1000:
        raise faults.bad_dimension(keys.shown(key), f"the kinds of the layers are expected, not {listed!r:.60}.")
    words = [_WORDS.get(str(word), NEMOTRON_BLOCKS.get(str(word), str(word))) for word in listed]
    if other := sorted(set(words) - set(NEMOTRON_BLOCKS.values())):
        raise faults.unsupported(keys.shown(key), f"layers of kind {', '.join(other):.60}.")
    return words


def nemotron_h(keys: Keys, heads: Heads, _layers: int) -> Kept:
    """Blocks are Mamba-2, attention, MLP or experts; the last two keep nothing (vllm/…/models/nemotron_h.py)."""
    state = mamba2(keys)
    for layer, kind in enumerate(nemotron_blocks(keys)):
        if kind in (FULL, LINEAR):
            yield layer, full_cache(heads) if kind == FULL else state


def mamba2(keys: Keys) -> LayerCache:
    """The convolution's last inputs (channels and B, C of each group), and heads x head_dim x state_size."""
    heads, groups, size = keys.size("mamba_n_heads"), keys.size("mamba_n_groups"), keys.size("mamba_d_state")
    inner, head_dim = _inner(keys, heads)
    kernel = keys.size("mamba_d_conv") - 1
    convolution = State((inner + 2 * groups * size) * kernel, "", groups, 2 * size * kernel)
    recurrent = State(heads * head_dim * size, _dtype(keys, "mamba_ssm_cache_dtype"))
    return LayerCache("state", (), states=(convolution, recurrent), name="mamba2")


def _inner(keys: Keys, heads: int) -> tuple[int, int]:
    """Channels and head dimension of Mamba-2; "auto" is what the channels leave to each head.

    Nemotron-H has no expansion: heads x head dimension. Falcon-H1 names the channels as `mamba_d_ssm`.
    """
    if keys.names.get("mamba_d_head") == "mamba_head_dim":
        return heads * keys.size("mamba_d_head"), keys.size("mamba_d_head")
    inner = keys.option("mamba_d_ssm") or keys.size("mamba_expand") * keys.size("hidden_size")
    if keys.get("mamba_d_head") in (None, "auto"):
        return inner, keys.divided("mamba_d_head", inner, heads)
    return inner, keys.size("mamba_d_head")


def _mixed(kinds: list[str], heads: Heads, state: LayerCache) -> Kept:
    return ((layer, full_cache(heads) if kind == FULL else state) for layer, kind in enumerate(kinds))


def _words(keys: Keys, layers: int) -> list[str] | None:
    """The kinds of layers by either key, in today's words. Raises Fault DC209, DC210."""
    for key in ("layer_types", "layers_block_type"):
        kinds = keys.kinds(key, layers)
        if kinds is not None:
            words = [_WORDS.get(kind, kind) for kind in kinds]
            if other := sorted(set(words) - {FULL, LINEAR}):
                raise faults.unsupported(keys.shown(key), f"layers of kind {', '.join(other)}.")
            return words
    return None


def _dtype(keys: Keys, key: str) -> str:
    value = keys.get(key)
    if value in (None, "auto"):
        return ""
    if value not in _DTYPES:
        raise faults.bad_dimension(keys.shown(key), f"one of {', '.join(_DTYPES)} is expected, not {value!r:.60}.")
    return str(value)
