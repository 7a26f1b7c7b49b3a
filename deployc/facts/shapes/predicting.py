"""What layers for multi-token prediction have beside an ordinary layer's blocks."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts.shapes.part import Part, Sizes, linear, norms

QWEN_NORMS = norms("mtp.norm", "mtp.pre_fc_norm_hidden", "mtp.pre_fc_norm_embedding")


def deepseek_prediction(sizes: Sizes) -> Iterator[Part]:
    """A projection of hidden state and embedding together; embedding and output layer are stored once more."""
    yield from linear("eh_proj", sizes.hidden, 2 * sizes.hidden)
    yield from linear("embed_tokens", sizes.arch.vocab_size, sizes.hidden)
    yield from linear("shared_head.head", sizes.arch.vocab_size, sizes.hidden)


def qwen_prediction(sizes: Sizes) -> Iterator[Part]:
    """Qwen3-Next and Qwen3.5: embedding and output layer are the model's own."""
    yield from linear("mtp.fc", sizes.hidden, 2 * sizes.hidden)
    yield from QWEN_NORMS(sizes)
