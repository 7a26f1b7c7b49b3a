"""The intermediate size of a dense MLP, and the number of layers, for families that say them in their own ways."""

from __future__ import annotations

from deployc.facts.architecture.keys import Keys


def depth(keys: Keys) -> int:
    """`num_hidden_layers`."""
    return keys.size("num_hidden_layers")


def plain(keys: Keys) -> int:
    """`intermediate_size`."""
    return keys.size("intermediate_size")


def widest(keys: Keys) -> int:
    """`intermediate_size`, which may be a list with a size for each layer (Gemma 3n)."""
    return keys.largest("intermediate_size")


def four_times(keys: Keys) -> int:
    """Four times the hidden size, where it is absent: so GPT-2, Falcon, BLOOM and Zamba2 document it."""
    return keys.size_or("intermediate_size", 4 * keys.size("hidden_size"))


def gemma4(keys: Keys) -> int:
    """Twice as wide in the layers that share K and V, with `use_double_wide_mlp` (gemma4.py)."""
    double = keys.switch("use_double_wide_mlp", default=False) and keys.option("num_kv_shared_layers") > 0
    return keys.size("intermediate_size") * (2 if double else 1)


def llama4(keys: Keys) -> int:
    """`intermediate_size` is an expert's; dense layers have `intermediate_size_mlp`."""
    return keys.size("intermediate_size_mlp")


def granite_hybrid(keys: Keys) -> int:
    """The MLP that every layer has is the shared one; `intermediate_size` is an expert's."""
    return keys.size("shared_intermediate_size")


def of_experts(keys: Keys) -> int:
    """No layer is dense: the shared expert, else a routed one."""
    return keys.option("shared_expert_intermediate_size") or keys.size("moe_intermediate_size")


def lfm2(keys: Keys) -> int:
    """`block_ff_dim`; adjusted to two thirds x multiplier, rounded up to `block_multiple_of` (lfm2.py, Lfm2MLP)."""
    key = "block_ff_dim" if keys.given("block_ff_dim") else "intermediate_size"
    size = keys.size(key)
    if not keys.switch("block_auto_adjust_ff_dim", default=True):
        return size
    size = 2 * size // 3
    factor = keys.get("block_ffn_dim_multiplier")
    if isinstance(factor, int | float) and 0 < factor < 100:
        size = int(factor * size)
    step = keys.option("block_multiple_of", 256) or 256
    return max(step, -(-size // step) * step)
