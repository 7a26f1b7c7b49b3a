"""Experts: how many, how many a token takes, how wide one is, and which layers have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deployc.facts import faults
from deployc.facts.architecture.keys import Keys
from deployc.facts.architecture.states import nemotron_blocks


@dataclass(frozen=True, slots=True)
class Experts:
    """`size` and `shared` are intermediate sizes: of one routed expert, of all shared ones together (0 = none)."""

    count: int = 0
    per_token: int = 0
    size: int = 0
    shared: int = 0
    layers: tuple[int, ...] = ()


NONE = Experts()


def all_layers(_keys: Keys, layers: int) -> Iterable[int]:
    """Every layer has experts."""
    return range(layers)


def after_first(keys: Keys, layers: int) -> Iterable[int]:
    """DeepSeek: from `first_k_dense_replace` on, each `moe_layer_freq`-th; GLM and others have no such interval."""
    every = keys.option("moe_layer_freq", 1) or 1
    return (layer for layer in range(keys.option("first_k_dense_replace"), layers) if layer % every == 0)


def listed_or_after_first(keys: Keys, layers: int) -> Iterable[int]:
    """`mlp_layer_types` says "sparse" or "dense"; absent, all but the first `first_k_dense_replace` (or one)."""
    kinds = keys.kinds("mlp_layer_types", layers)
    if kinds is None:
        return after_first(keys, layers) if keys.given("first_k_dense_replace") else range(1, layers)
    return (layer for layer, kind in enumerate(kinds) if kind == "sparse")


def sparse_steps(keys: Keys, layers: int) -> Iterable[int]:
    """Qwen: each `decoder_sparse_step`-th layer, without those in `mlp_only_layers`."""
    step, dense = keys.option("decoder_sparse_step", 1), keys.numbers("mlp_only_layers")
    if step < 1:
        raise faults.bad_dimension(keys.shown("decoder_sparse_step"), f"a step of layers is expected, not {step}.")
    return (layer for layer in range(layers) if layer not in dense and (layer + 1) % step == 0)


def interleaved(keys: Keys, layers: int) -> Iterable[int]:
    """Llama 4: `moe_layers`, absent each `interleave_moe_layer_step`-th."""
    step = keys.option("interleave_moe_layer_step", 1) or 1
    return keys.numbers("moe_layers") or range(step - 1, layers, step)


def ernie(keys: Keys, layers: int) -> Iterable[int]:
    """From `moe_layer_start_index` to `moe_layer_end_index` (-1 = the last), each `moe_layer_interval`-th."""
    last = keys.get("moe_layer_end_index")
    last = layers - 1 if type(last) is not int or last < 0 else last
    every = keys.option("moe_layer_interval", 1) or 1
    return (n for n in range(keys.option("moe_layer_start_index"), min(last + 1, layers)) if (n + 1) % every == 0)


def jamba(keys: Keys, layers: int) -> Iterable[int]:
    """Each `expert_layer_period`-th from `expert_layer_offset` on."""
    period = keys.size("expert_layer_period")
    return (layer for layer in range(layers) if layer % period == keys.option("expert_layer_offset"))


def after_dense(keys: Keys, layers: int) -> Iterable[int]:
    """LFM2: all but the first `num_dense_layers`."""
    return range(keys.option("num_dense_layers"), layers)


def nemotron(keys: Keys, _layers: int) -> Iterable[int]:
    """The blocks of experts."""
    return (layer for layer, kind in enumerate(nemotron_blocks(keys)) if kind == "moe")


def no_shared(_keys: Keys, _size: int) -> int:
    """No expert that every token takes."""
    return 0


def one(_keys: Keys, size: int) -> int:
    """One shared expert, as wide as a routed one."""
    return size


def named(key: str) -> Callable[[Keys, int], int]:
    """The shared experts' intermediate size stands under `key`."""
    return lambda keys, _size: keys.option(key)


def counted(key: str) -> Callable[[Keys, int], int]:
    """`key` counts shared experts that are as wide as a routed one."""
    return lambda keys, size: size * keys.option(key)


def nemotron_shared(keys: Keys, _size: int) -> int:
    """`n_shared_experts` of `moe_shared_expert_intermediate_size`."""
    return keys.option("n_shared_experts", 1) * keys.option("moe_shared_expert_intermediate_size")


def hunyuan(keys: Keys) -> int:
    """`moe_intermediate_size`, for each layer or one for all; absent it is `intermediate_size` (hunyuan_v1.py)."""
    return keys.largest("moe_intermediate_size" if keys.given("moe_intermediate_size") else "intermediate_size")


def hunyuan_shared(keys: Keys, _size: int) -> int:
    """`num_shared_expert` of `intermediate_size`; a list counts them for each layer (hunyuan_v1.py, 0.25.1)."""
    counts = keys.get("num_shared_expert")
    return keys.size("intermediate_size") * (keys.largest("num_shared_expert") if counts else 0)


@dataclass(frozen=True, slots=True)
class Moe:
    """Under which keys a family has its experts; their number and those of a token have names of their own (ALSO)."""

    size: str = "moe_intermediate_size"
    layers: Callable[[Keys, int], Iterable[int]] = all_layers
    shared: Callable[[Keys, int], int] = no_shared
    optional: bool = False  # a dense model has the same model_type: no experts, or one
    wide: Callable[[Keys], int] | None = None  # in place of `size`, where that is not one key

    def read(self, keys: Keys, layers: int) -> Experts:
        """Raises Fault DC210."""
        if self.optional and keys.get("num_experts") in (None, 0, 1):
            return NONE
        having = tuple(sorted({layer for layer in self.layers(keys, layers) if 0 <= layer < layers}))
        if self.optional and not having:
            return NONE
        count, chosen = keys.largest("num_experts"), keys.largest("num_experts_per_tok")
        if chosen > count:
            raise faults.bad_dimension(keys.shown("num_experts_per_tok"), f"{chosen} of {count} experts a token.")
        size = self.wide(keys) if self.wide else keys.size(self.size)
        return Experts(count, chosen, size, self.shared(keys, size), having)
