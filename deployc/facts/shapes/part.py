"""What the block kinds are made of: a part is one tensor of a module, or several whose names differ in one number.

A block is a function from the sizes of a model to its parts, in names within one layer ("self_attn.q_proj.weight").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deployc.facts import faults
from deployc.types.architecture import Architecture


class Part(NamedTuple):
    """`name` may hold one run of numbers, "experts.{0-7}.w1.weight", and stands for `tensors` of them then."""

    name: str
    shape: tuple[int, ...]
    tensors: int = 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a block reads its sizes from: the architecture, and config.json for the rest.

    `config` is that of the language model or tower, nested or not; `whole` is config.json itself.
    """

    config: Mapping[str, Any]
    arch: Architecture
    whole: Mapping[str, Any]

    def number(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number; `default` is what the configuration class documents for its absence. Raises Fault DC210."""
        value = self.config.get(key, default)
        if type(value) is not int or not least <= value <= 2**31:
            absent = key not in self.config and default is None
            raise faults.bad_dimension(key, "it is not there." if absent else f"a size is expected, not {value!r:.60}.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false; `default` is what the configuration class documents for its absence. Raises Fault DC210."""
        value = self.config.get(key, default)
        if not isinstance(value, bool):
            raise faults.bad_dimension(key, f"true or false is expected, not {value!r:.60}.")
        return value

    def names(self, key: str) -> Sequence[Any]:
        """A list, empty where it is absent or null. Raises Fault DC210."""
        value = self.config.get(key) or []
        if not isinstance(value, list):
            raise faults.bad_dimension(key, f"a list is expected, not {value!r:.60}.")
        return value

    @property
    def hidden(self) -> int:
        return self.arch.hidden_size

    @property
    def inner(self) -> int:
        return self.arch.intermediate_size

    @property
    def expert_inner(self) -> int:
        """Intermediate size of one expert. Raises Fault DC210 where the architecture does not have it."""
        if not self.arch.moe_intermediate_size:
            raise faults.bad_dimension("moe_intermediate_size", "the size of one expert is not known.")
        return self.arch.moe_intermediate_size


Block = Callable[[Sizes], Iterable[Part]]


@dataclass(frozen=True, slots=True)
class If:
    """A key of config.json that is true or false, and what its configuration class documents for its absence."""

    key: str
    default: bool = False


Switch = bool | If


def holds(switch: Switch, sizes: Sizes) -> bool:
    """Whether it is so in this model. Raises Fault DC210 for a key that is neither true nor false."""
    return switch if isinstance(switch, bool) else sizes.flag(switch.key, switch.default)


def linear(name: str, rows: int, columns: int, bias: bool = False) -> Iterator[Part]:
    """A weight [out, in], as torch's Linear keeps it, and its bias."""
    yield Part(f"{name}.weight", (rows, columns))
    if bias:
        yield Part(f"{name}.bias", (rows,))


def norm(name: str, size: int, bias: bool = False) -> Iterator[Part]:
    """A weight, and the bias of a layer norm."""
    yield Part(f"{name}.weight", (size,))
    if bias:
        yield Part(f"{name}.bias", (size,))


def within(module: str, parts: Iterable[Part], count: int = 1) -> Iterator[Part]:
    """The same parts inside a module, or inside each of `count` numbered ones where `module` holds their run."""
    for name, shape, one in parts:
        yield Part(f"{module}.{name}", shape, one * count)


def norms(*names: str, bias: bool = False) -> Block:
    """Norms over the hidden size."""

    def block(sizes: Sizes) -> Iterator[Part]:
        for name in names:
            yield from norm(name, sizes.hidden, bias)

    return block
