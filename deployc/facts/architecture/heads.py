"""Query heads, KV heads and head dimension of the ordinary full attention layer."""

from __future__ import annotations

from typing import NamedTuple

from deployc.facts import faults
from deployc.facts.architecture.keys import Keys


class Heads(NamedTuple):
    """Before tensor parallelism; `dim` in elements of a key."""

    query: int
    kv: int
    dim: int


def plain(keys: Keys) -> Heads:
    """Absent KV heads mean one a query head, an absent head dimension means hidden size over heads.

    So the configuration classes of these families (`__post_init__`) and vLLM (get_total_num_kv_heads and
    get_head_size of vllm/transformers_utils/model_arch_config_convertor.py, 0.33.0). Raises Fault DC210.
    """
    query = keys.size("num_attention_heads")
    return checked(keys, query, keys.size_or("num_key_value_heads", query))


def checked(keys: Keys, query: int, kv: int) -> Heads:
    """With the head dimension; KV heads must divide the query heads. Raises Fault DC210."""
    if query % kv:
        raise faults.bad_dimension(keys.shown("num_key_value_heads"), f"{kv} does not divide the {query} query heads.")
    if keys.get("head_dim") is not None:
        return Heads(query, kv, keys.size("head_dim"))
    return Heads(query, kv, keys.divided("head_dim", keys.size("hidden_size"), query))


def falcon(keys: Keys) -> Heads:
    """One KV head, unless it is of the new architecture (40b, 180b) (FalconModelArchConfigConvertor, 0.33.0)."""
    query = keys.size("num_attention_heads")
    if keys.switch("new_decoder_architecture", default=False):
        return checked(keys, query, keys.size_or("num_key_value_heads", query))
    return checked(keys, query, 1 if keys.switch("multi_query", default=True) else query)


def latent(keys: Keys) -> Heads:
    """Latent attention: every query head has keys of its own once they are unfolded (deepseek_v2.py)."""
    query = keys.size("num_attention_heads")
    keys.size("v_head_dim")  # that the values' heads have a size, which PREDICT reads
    return Heads(query, query, keys.size("qk_nope_head_dim") + keys.size("qk_rope_head_dim"))


def gemma4(keys: Keys) -> Heads:
    """The full layers have heads of their own where `global_head_dim` and `attention_k_eq_v` say so.

    Gemma4TextConfig.__post_init__: global_head_dim is 512 where absent; num_global_key_value_heads counts only with
    attention_k_eq_v. Newer files say both layer by layer in `per_layer_config`.
    """
    query, kv, _ = plain(keys)
    if keys.given("per_layer_config"):
        own = _own_heads(keys)
        return Heads(query, own.option("num_key_value_heads", kv) or kv, own.size("head_dim"))
    if keys.switch("attention_k_eq_v", default=False):
        kv = keys.option("num_global_key_value_heads") or kv
    return Heads(query, kv, keys.option("global_head_dim", 512) or 512)


def _own_heads(keys: Keys) -> Keys:
    """What `per_layer_config` says of every layer that it names, which must be the same. Raises Fault DC209, DC210."""
    key, layers = keys.shown("per_layer_config"), keys.get("per_layer_config")
    if not isinstance(layers, dict) or not layers or not all(isinstance(one, dict) for one in layers.values()):
        raise faults.bad_dimension(key, f"an object for each layer is expected, not {layers!r:.60}.")
    first, *others = layers.values()
    if any(other != first for other in others) or not first.keys() <= {"head_dim", "num_key_value_heads"}:
        raise faults.unsupported(key, "layers of more than two sizes.")
    return Keys(first, f"{key}.{next(iter(layers))}.")


def zamba2(keys: Keys) -> Heads:
    """The shared attention works on the hidden state beside the embeddings: twice the width (Zamba2Config)."""
    query = keys.size("num_attention_heads")
    kv = keys.size_or("num_key_value_heads", query)
    return Heads(query, kv, keys.divided("attention_head_dim", 2 * keys.size("hidden_size"), query))
