"""One object of config.json, read by the names that most models use, with what its configuration class documents.

transformers writes a whole config.json with every key of its class, so a dimension that is absent there is missing.
A nested object (`text_config`, `vision_config`) holds only what differs from its class's defaults
(PreTrainedConfig.to_diff_dict), so there an absent key *is* its class's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deployc.facts import faults
from deployc.types.config import Config

ALSO: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers"),
    "num_attention_heads": ("n_head",),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv"),
    "head_dim": ("attention_head_dim",),
    "hidden_size": ("n_embd", "n_embed"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size"),
    "max_position_embeddings": ("n_positions", "seq_length"),
    "num_experts": ("moe_num_experts", "n_routed_experts", "num_local_experts"),
    "num_experts_per_tok": ("moe_k", "moe_topk", "top_k_experts", "num_experts_per_token", "experts_per_token"),
}
"""Other spellings of a usual name: of older families, and of newer releases of transformers (`attribute_map`).

vLLM takes them too: CONFIG_FIELD_ALIASES of vllm/transformers_utils/config.py, 0.33.0.
"""

_MOST = {"num_hidden_layers": 1000, "num_experts": 4096}
"""Far above any model: their product is the number of tensors."""


@dataclass(frozen=True, slots=True)
class Keys:
    """`names` maps a key's usual name to this family's; `defaults` are its class's; `path` ends in a dot if nested."""

    values: Config
    path: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def spelled(self, key: str) -> str:
        """The key as this file writes it, else as its class does."""
        own = self.names.get(key, key)
        names = (own, *ALSO.get(key, ()))
        found = (name for held in (self.values, self.defaults) for name in names if name in held)
        return next(found, own)

    def shown(self, key: str) -> str:
        """The key as an error names it and `--assume` takes it: dotted from the top of config.json."""
        return self.path + self.spelled(key)

    def given(self, key: str) -> bool:
        """Whether the file itself has it, and not as null."""
        return self.values.get(self.spelled(key)) is not None

    def get(self, key: str) -> Any:
        """Its value, or its class's default where it is absent."""
        name = self.spelled(key)
        return self.values[name] if name in self.values else self.defaults.get(name)

    def size(self, key: str) -> int:
        """A dimension that must be there. Raises Fault DC210."""
        if self.spelled(key) not in self.values and (not self.path or self.get(key) is None):
            raise faults.bad_dimension(self.shown(key), "it is not there.")
        return self.whole(key, self.get(key))

    def size_or(self, key: str, other: int) -> int:
        """A dimension, or `other` where the class documents that its absence means so. Raises Fault DC210.

        A class that has a number for it documents another meaning: that number holds for one size of the model.
        """
        value = self.get(key)
        if value is None:
            return other
        return self.size(key)

    def option(self, key: str, other: int = 0) -> int:
        """A whole number whose class default holds for every size of the model; absent and null are `other`."""
        value = self.get(key)
        if value is None:
            return other
        return self.whole(key, value, least=0)

    def switch(self, key: str, *, default: bool | None = None) -> bool:
        """True or false; absent it is its class's default, else `default`, and required where that is None."""
        name = self.spelled(key)
        value = self.values.get(name, self.defaults.get(name, default))
        if not isinstance(value, bool):
            raise faults.bad_dimension(self.shown(key), f"true or false is expected, not {value!r:.60}.")
        return value

    def kinds(self, key: str, layers: int) -> list[str] | None:
        """A list with one word for each layer; None where it is absent. Raises Fault DC210."""
        value = self.get(key)
        if value is None or value == []:
            return None
        if not isinstance(value, list) or not all(isinstance(kind, str) for kind in value):
            raise faults.bad_dimension(self.shown(key), f"a list of words is expected, not {value!r:.60}.")
        if len(value) != layers:
            raise faults.bad_dimension(self.shown(key), f"it has {len(value)} entries for {layers} layers.")
        return value

    def numbers(self, key: str) -> list[int]:
        """A list of whole numbers; empty where it is absent. Raises Fault DC210."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(type(number) is int for number in value):
            raise faults.bad_dimension(self.shown(key), f"a list of whole numbers is expected, not {value!r:.60}.")
        return value

    def largest(self, key: str) -> int:
        """A dimension, or the largest one of a list that names it for each layer. Raises Fault DC210."""
        value = self.get(key)
        if isinstance(value, list) and value:
            return max(self.whole(key, each) for each in value)
        return self.size(key)

    def whole(self, key: str, value: Any, least: int = 1) -> int:
        """`value` as a whole number of a size that can be. Raises Fault DC210."""
        most = _MOST.get(key, 2**31)
        if type(value) is not int or not least <= value <= most:
            expected = f"a whole number from {least} to {most:,} is expected, not {value!r:.60}."
            raise faults.bad_dimension(self.shown(key), expected)
        return value

    def divided(self, key: str, total: int, parts: int) -> int:
        """total / parts, which stands for the absent `key`. Raises Fault DC210 where it leaves a rest."""
        if total % parts:
            raise faults.bad_dimension(self.shown(key), f"absent, and {parts} do not divide {total}.")
        return total // parts


def switch(config: Config, key: str, *, default: bool | None) -> bool:
    """A key that is true or false; absent it is `default`, and required where that is None. Raises Fault DC210."""
    return Keys(config).switch(key, default=default)
