"""What Gemma 3n and 4 have beside attention and network: inputs of each layer's own, and 3n's parallel streams."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts import faults
from deployc.facts.shapes.mlp import GATED, triple
from deployc.facts.shapes.part import Part, Sizes, linear, norm, within
from deployc.types.groups import run


def gemma3n_mlp(sizes: Sizes) -> Iterator[Part]:
    """`intermediate_size` is a number or a list of equal ones. Raises Fault DC210 for unequal ones."""
    inner = sizes.config.get("intermediate_size")
    if isinstance(inner, list):
        if len({*map(str, inner)}) != 1 or type(inner[0]) is not int:
            raise faults.bad_dimension("intermediate_size", f"one size for all layers is expected, not {inner!r:.60}.")
        inner = inner[0]
    else:
        inner = sizes.number("intermediate_size")
    yield from within("mlp", triple(GATED, inner, sizes.hidden))


def wide_mlp(sizes: Sizes) -> Iterator[Part]:
    """Gemma 4: twice the intermediate size."""
    yield from within("mlp", triple(GATED, 2 * sizes.number("intermediate_size"), sizes.hidden))


def gemma4_mlp(sizes: Sizes) -> Iterator[Part]:
    """Gemma 4: the intermediate size that config.json names; the architecture has the widest one."""
    yield from within("mlp", triple(GATED, sizes.number("intermediate_size"), sizes.hidden))


def layer_scalar(_: Sizes) -> Iterator[Part]:
    """One learned number."""
    yield Part("layer_scalar", (1,))


def per_layer_input(sizes: Sizes) -> Iterator[Part]:
    """Of each layer: gate, projection and norm of its own input; none where `hidden_size_per_layer_input` is 0."""
    if width := _width(sizes):
        yield from linear("per_layer_input_gate", width, sizes.hidden)
        yield from linear("per_layer_projection", sizes.hidden, width)
        yield from norm("post_per_layer_input_norm", sizes.hidden)


def per_layer_tables(sizes: Sizes) -> Iterator[Part]:
    """Beside the embedding: one row a token for all layers together."""
    if width := _width(sizes):
        every = sizes.arch.layers * width
        yield from linear("model.embed_tokens_per_layer", sizes.number("vocab_size_per_layer_input", 262144), every)
        yield from linear("model.per_layer_model_projection", every, sizes.hidden)
        yield from norm("model.per_layer_projection_norm", width)


def _width(sizes: Sizes) -> int:
    """Documented default of Gemma3nTextConfig and Gemma4TextConfig: 256."""
    return sizes.number("hidden_size_per_layer_input", 256, least=0)


def altup(sizes: Sizes) -> Iterator[Part]:
    """Gemma 3n's parallel streams and low-rank residual. Documented defaults: altup_num_inputs 4, laurel_rank 64."""
    hidden, streams = sizes.hidden, _streams(sizes)
    rank = sizes.number("laurel_rank", 64)
    yield Part("altup.correct_output_scale", (hidden,))
    yield from linear("altup.correction_coefs", streams, streams)
    yield from linear("altup.prediction_coefs", streams * streams, streams)
    yield from linear("altup.modality_router", streams, hidden)
    yield from norm("altup.router_norm", hidden)
    yield from linear("laurel.linear_left", rank, hidden)
    yield from linear("laurel.linear_right", hidden, rank)
    yield from norm("laurel.post_laurel_norm", hidden)


def gemma3n_tables(sizes: Sizes) -> Iterator[Part]:
    """Beside the embedding: into and out of the further streams."""
    yield from per_layer_tables(sizes)
    others = _streams(sizes) - 1
    for name in ("altup_projections", "altup_unembed_projections"):
        yield Part(f"model.{name}.{run(range(others))}.weight", (sizes.hidden, sizes.hidden), others)


def _streams(sizes: Sizes) -> int:
    return sizes.number("altup_num_inputs", 4, least=2)
