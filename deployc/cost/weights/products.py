"""The matrix products of one step on a rank: the sizes that kernels see, and the bytes of weights each reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deployc.cost.weights.held import Held, held
from deployc.cost.weights.linears import linears
from deployc.cost.weights.names import without_numbers
from deployc.types.choices import Choices
from deployc.types.facts import Facts

EIGHT_BITS = 1.5
"""Bytes a weight below which a matrix is quantized: 16-bit ones take 2, 8-bit ones 1 and their scales."""


@dataclass(frozen=True, slots=True)
class Product:
    """Matrices of one size, those that the engine joins as one. `bytes` of all `count` together."""

    outputs: int
    inputs: int
    count: int
    bytes: int
    routed: bool = False  # of experts: `count` is over all of them

    @property
    def weights(self) -> int:
        """How many weights all of them have."""
        return self.outputs * self.inputs * self.count

    @property
    def quantized(self) -> bool:
        """Whether they are stored in fewer than 16 bits."""
        return self.bytes < EIGHT_BITS * self.weights


def products(facts: Facts, choices: Choices) -> tuple[Product, ...]:
    """Every linear layer of the decoder, joined as the engine joins them (qkv_proj, gate_up_proj)."""
    sizes: dict[tuple[str, int, int], Product] = {}
    weights: dict[str, int] = {}
    for one in linears(facts, choices):
        key = (one.of, one.inputs, one.copies)
        joined = one.outputs + (sizes[key].outputs if key in sizes else 0)
        sizes[key] = Product(joined, one.inputs, one.copies, 0, one.routed)
        weights[one.of] = weights.get(one.of, 0) + one.outputs * one.inputs * one.copies
    stored: dict[str, int] = {}
    for part in held(facts, choices):
        stored[_of(part)] = stored.get(_of(part), 0) + part.bytes * part.count
    return tuple(
        replace(size, bytes=round(stored.get(of, 0) * size.weights / weights[of])) for (of, _, _), size in sizes.items()
    )


def _of(part: Held) -> str:
    return without_numbers(part.name.rsplit("|", 1)[0])
