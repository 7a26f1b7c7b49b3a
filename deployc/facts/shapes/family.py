"""What a row of the tables of families says: the blocks of its layers, and what stands around the layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from deployc.facts.shapes import layers
from deployc.facts.shapes.layers import Layers
from deployc.facts.shapes.part import Block, Part, Sizes, Switch, holds, linear, norm

Placed = tuple[Block, Layers]
"""A block and the layers that have it."""


def everywhere(*blocks: Block) -> tuple[Placed, ...]:
    """These blocks in every layer."""
    return tuple((block, layers.every) for block in blocks)


def mixture(dense: Block, *sparse: Block) -> tuple[Placed, ...]:
    """`sparse` in the layers with experts, `dense` in the others."""
    return (dense, layers.other_than(layers.sparse)), *((block, layers.sparse) for block in sparse)


def outside(
    embedding: str = "model.embed_tokens",
    final: str = "model.norm",
    head: str = "lm_head",
    *,
    final_bias: bool = False,
    head_bias: Switch = False,
    more: Block | None = None,
) -> Block:
    """Embedding, last norm ("" = none with a weight), and the output layer where it is not the embedding again."""

    def block(sizes: Sizes) -> Iterator[Part]:
        vocabulary, hidden = sizes.arch.vocab_size, sizes.hidden
        yield from linear(embedding, vocabulary, hidden)
        if final:
            yield from norm(final, hidden, final_bias)
        if not sizes.arch.tie_word_embeddings:
            yield from linear(head, vocabulary, hidden)
        if holds(head_bias, sizes):
            yield Part(f"{head}.bias", (vocabulary,))
        if more:
            yield from more(sizes)

    return block


@dataclass(frozen=True, slots=True)
class Prediction:
    """Layers that predict further tokens (multi-token prediction), stored beside the model; an engine loads them for
    speculative decoding only.

    There are as many as `key` says, `default` where it is absent. `module` is where layer i lies, with `{i}` and, after
    the model's own layers, `{after}`; `blocks` are in each, `once` lies beside them.
    """

    key: str
    module: str
    blocks: tuple[Block, ...]
    default: int = 0
    once: Block | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """`blocks` lie in `module`.<number of the layer>. `strict`: released checkpoints have exactly these names."""

    blocks: tuple[Placed, ...]
    module: str = "model.layers"
    outside: Block = field(default_factory=outside)
    prediction: Prediction | None = None
    strict: bool = False


Rows = Mapping[str, Family]
"""By model_type."""
