"""What each attention layer keeps: all tokens, a window of them, a chunk, or nothing of its own.

A function here gives, layer by layer, (number, LayerCache without numbers); a layer may stand in it twice or never.
Which window the engine really takes: vllm/engine/arg_utils.py (`CacheConfig.sliding_window` is set only where all
layers are sliding) and `per_layer_sliding_window` of each vllm/model_executor/models/<family>.py; read in 0.33.0 and
0.19.0, which agree here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from deployc.facts import faults
from deployc.facts.architecture.heads import Heads
from deployc.facts.architecture.keys import Keys
from deployc.types.architecture import LayerCache

Kept = Iterable[tuple[int, LayerCache]]
Caches = Callable[[Keys, Heads, int], Kept]

FULL, SLIDING, CHUNKED, LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"


def gathered(kept: Kept) -> tuple[LayerCache, ...]:
    """One entry for each distinct kind, with the numbers of its layers; in the order in which they first occur."""
    found: dict[LayerCache, list[int]] = {}
    for layer, cache in kept:
        found.setdefault(cache, []).append(layer)
    return tuple(
        LayerCache(
            c.kind, tuple(layers), c.kv_heads, c.head_dim, c.head_dim_v, c.window, c.states, c.name, c.dtype
        )
        for c, layers in found.items()
    )  # fmt: skip


def full_cache(heads: Heads) -> LayerCache:
    """K and V of every token."""
    return LayerCache("full", (), heads.kv, heads.dim, heads.dim)


def window_cache(heads: Heads, window: int, kind: str = SLIDING) -> LayerCache:
    """K and V of the last `window` tokens, or of the running chunk."""
    return LayerCache("sliding" if kind == SLIDING else "chunked", (), heads.kv, heads.dim, heads.dim, window)


def kinds_of(keys: Keys, layers: int, known: Sequence[str]) -> list[str] | None:
    """`layer_types`, all of them `known`; None where it is absent. Raises Fault DC209, DC210."""
    kinds = keys.kinds("layer_types", layers)
    if kinds is not None and (other := sorted(set(kinds) - set(known))):
        raise faults.unsupported(keys.shown("layer_types"), f"layers of kind {', '.join(other)}.")
    return kinds


def uniform(keys: Keys, heads: Heads, layers: int) -> Kept:
    """All layers alike: within `sliding_window` where the file has one (0 and null are none)."""
    kinds = kinds_of(keys, layers, (FULL, SLIDING))
    if kinds is not None and len(set(kinds)) > 1:
        raise faults.unsupported(keys.shown("layer_types"), "layers of several kinds in a family that has one.")
    window = 0 if kinds is not None and kinds[0] == FULL else keys.option("sliding_window")
    return ((layer, window_cache(heads, window) if window else full_cache(heads)) for layer in range(layers))


def switched(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Qwen2: a window only with `use_sliding_window`, and then from layer `max_window_layers` on.

    vLLM refuses a window in some of the layers (vllm/model_executor/models/qwen2.py).
    """
    kinds = _switched_kinds(keys, layers)
    if len(set(kinds)) > 1:
        key = "layer_types" if keys.given("layer_types") else "max_window_layers"
        raise faults.unsupported(keys.shown(key), "a window in some of the layers, which the engine refuses.")
    return _by_kind(keys, heads, kinds)


def ignoring(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Qwen3: as Qwen2, but vLLM gives no layer a window unless all have one (vllm/model_executor/models/qwen3.py)."""
    kinds = _switched_kinds(keys, layers)
    return _by_kind(keys, heads, kinds if len(set(kinds)) == 1 else [FULL] * layers)


def _switched_kinds(keys: Keys, layers: int) -> list[str]:
    """`layer_types`, or what Qwen2Config.__post_init__ puts in its place."""
    kinds = kinds_of(keys, layers, (FULL, SLIDING))
    if kinds is not None:
        return kinds
    window = keys.switch("use_sliding_window", default=False) and keys.option("sliding_window")
    first = keys.option("max_window_layers") if window else layers
    return [SLIDING if layer >= first else FULL for layer in range(layers)]


def every(full: int, key: str = "") -> Caches:
    """Layers of a window, and each `full`-th of all tokens, unless `layer_types` says otherwise.

    `key` is the one that gives another interval, in files that are older than `layer_types`.
    """

    def caches(keys: Keys, heads: Heads, layers: int) -> Kept:
        return _by_kind(keys, heads, every_kinds(keys, layers, full, key))

    return caches


def every_kinds(keys: Keys, layers: int, full: int, key: str = "", other: str = SLIDING) -> list[str]:
    """`layer_types`, or each `full`-th layer of all tokens and the others of kind `other`."""
    kinds = kinds_of(keys, layers, (FULL, other))
    if kinds is not None:
        return kinds
    interval = keys.option(key, full) if key else full
    if interval < 1:
        raise faults.bad_dimension(keys.shown(key), f"an interval of layers is expected, not {interval}.")
    return [other if (layer + 1) % interval else FULL for layer in range(layers)]


def exaone4(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Without a window all layers are full (Exaone4Config.__post_init__); 32B has three windows to a full layer."""
    if not keys.option("sliding_window"):
        return ((layer, full_cache(heads)) for layer in range(layers))
    return _by_kind(keys, heads, every_kinds(keys, layers, 4, "sliding_window_pattern"))


def listed(keys: Keys, heads: Heads, layers: int) -> Kept:
    """As `layer_types` says; without it all alike, in a window where there is one (llama.py, Ministral, SmolLM3)."""
    kinds = kinds_of(keys, layers, (FULL, SLIDING))
    return uniform(keys, heads, layers) if kinds is None else _by_kind(keys, heads, kinds)


def smollm3(keys: Keys, heads: Heads, layers: int) -> Kept:
    """A window only with `use_sliding_window`, in the layers without rotary embedding, which `layer_types` lists."""
    if kinds_of(keys, layers, (FULL, SLIDING)) is None and keys.switch("use_sliding_window", default=False):
        raise faults.bad_dimension(keys.shown("layer_types"), "it is not there, and use_sliding_window is true.")
    kinds = kinds_of(keys, layers, (FULL, SLIDING)) or [FULL] * layers
    return _by_kind(keys, heads, kinds)


def alternating(keys: Keys, heads: Heads, layers: int) -> Kept:
    """gpt-oss: even layers have the window, whatever `layer_types` says (vllm/model_executor/models/gpt_oss.py)."""
    kinds_of(keys, layers, (FULL, SLIDING))
    return _by_kind(keys, heads, [FULL if layer % 2 else SLIDING for layer in range(layers)])


def llama4(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Layers with rotary embedding attend within their chunk, the others to all (vllm/…/models/llama4.py).

    `no_rope_layers` has 1 for a layer *with* it; absent, each `no_rope_layer_interval`-th layer has none.
    """
    rotary, interval = keys.numbers("no_rope_layers"), keys.option("no_rope_layer_interval", 4) or 4
    rotary = rotary or [int((layer + 1) % interval != 0) for layer in range(layers)]
    if len(rotary) != layers:
        raise faults.bad_dimension(keys.shown("no_rope_layers"), f"it has {len(rotary)} entries for {layers} layers.")
    chunk = keys.option("attention_chunk_size")
    for layer, has in enumerate(rotary):
        yield layer, window_cache(heads, chunk, CHUNKED) if has and chunk else full_cache(heads)


def gemma3n(keys: Keys, heads: Heads, layers: int) -> Kept:
    """The last `num_kv_shared_layers` read what an earlier layer of their kind keeps."""
    own = _own(keys, layers)
    return (pair for pair in _by_kind(keys, heads, every_kinds(keys, layers, 5)) if pair[0] < own)


def gemma4(keys: Keys, heads: Heads, layers: int) -> Kept:
    """Sliding layers have the plain heads, full layers those of `heads`; the last layer is always full.

    K and V are both kept where `attention_k_eq_v` makes them one weight (vllm/model_executor/models/gemma4.py).
    """
    kinds, own = every_kinds(keys, layers, 6), _own(keys, layers)
    kinds = [*kinds[:-1], FULL]
    plain = Heads(heads.query, keys.size_or("num_key_value_heads", heads.query), keys.size("head_dim"))
    window = _window(keys)
    for layer, kind in enumerate(kinds[:own]):
        yield layer, full_cache(heads) if kind == FULL else window_cache(plain, window)


def _own(keys: Keys, layers: int) -> int:
    shared = keys.option("num_kv_shared_layers")
    if shared >= layers:
        raise faults.bad_dimension(keys.shown("num_kv_shared_layers"), f"{shared} of {layers} layers.")
    return layers - shared


def _by_kind(keys: Keys, heads: Heads, kinds: Sequence[str]) -> Kept:
    window = _window(keys) if SLIDING in kinds else 0
    return (
        (layer, window_cache(heads, window) if kind == SLIDING and window else full_cache(heads))
        for layer, kind in enumerate(kinds)
    )


def _window(keys: Keys) -> int:
    """Raises Fault DC210 where the key that sliding layers need is absent; 0 and null close no window."""
    if "sliding_window" not in keys.values and "sliding_window" not in keys.defaults:
        raise faults.bad_dimension(keys.shown("sliding_window"), "it is not there, and layers have a window.")
    return keys.option("sliding_window")
