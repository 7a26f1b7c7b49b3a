"""Tensors of a dense feed-forward network: gated or not, its two input matrices apart or in one."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts.shapes.part import Block, Part, Sizes, Switch, holds, linear, within

GATED = ("gate_proj", "up_proj", "down_proj")
NUMBERED = ("w1", "w3", "w2")


def triple(names: tuple[str, str, str], inner: int, hidden: int, bias: bool = False) -> Iterator[Part]:
    """Gate, up and down."""
    gate, up, down = names
    yield from linear(gate, inner, hidden, bias)
    yield from linear(up, inner, hidden, bias)
    yield from linear(down, hidden, inner, bias)


def gated(module: str = "mlp", names: tuple[str, str, str] = GATED, *, bias: Switch = False) -> Block:
    """Three matrices."""

    def block(sizes: Sizes) -> Iterator[Part]:
        yield from within(module, triple(names, sizes.inner, sizes.hidden, holds(bias, sizes)))

    return block


def joined(module: str = "mlp", names: tuple[str, str] = ("gate_up_proj", "down_proj"), *, key: str = "") -> Block:
    """Gate and up in one matrix of twice the rows; `key` names a size that is not the architecture's own."""

    def block(sizes: Sizes) -> Iterator[Part]:
        inner = sizes.number(key) if key else sizes.inner
        yield from linear(f"{module}.{names[0]}", 2 * inner, sizes.hidden)
        yield from linear(f"{module}.{names[1]}", sizes.hidden, inner)

    return block


def plain(up: str, down: str, *, bias: Switch = False, transposed: bool = False) -> Block:
    """Two matrices and no gate. `transposed`: [in, out], GPT-2's Conv1D."""

    def block(sizes: Sizes) -> Iterator[Part]:
        for name, rows, columns in ((up, sizes.inner, sizes.hidden), (down, sizes.hidden, sizes.inner)):
            yield Part(f"{name}.weight", (columns, rows) if transposed else (rows, columns))
            if holds(bias, sizes):
                yield Part(f"{name}.bias", (rows,))

    return block
