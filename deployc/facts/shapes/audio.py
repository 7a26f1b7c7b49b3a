"""Tensors of audio towers: Whisper's encoder (Qwen2-Audio, Voxtral) and Gemma 4's conformer."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts import faults
from deployc.facts.shapes.part import Part, Sizes, linear, norm, within
from deployc.facts.shapes.towers import clippable
from deployc.types.groups import run


def whisper(sizes: Sizes) -> Iterator[Part]:
    """Two convolutions over mel bins, learned positions; keys have no bias. Voxtral names sizes as a
    language model does. Defaults of Qwen2AudioEncoderConfig and VoxtralEncoderConfig."""
    hidden = sizes.number("d_model" if "d_model" in sizes.config else "hidden_size", 1280)
    inner = sizes.number("encoder_ffn_dim" if "encoder_ffn_dim" in sizes.config else "intermediate_size", 5120)

    def layer() -> Iterator[Part]:
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from linear(f"self_attn.{name}", hidden, hidden, bias=name != "k_proj")
        yield from norm("self_attn_layer_norm", hidden, bias=True)
        yield from linear("fc1", inner, hidden, bias=True)
        yield from linear("fc2", hidden, inner, bias=True)
        yield from norm("final_layer_norm", hidden, bias=True)

    for name, channels in (("conv1", sizes.number("num_mel_bins", 128)), ("conv2", hidden)):
        yield Part(f"{name}.weight", (hidden, channels, 3))
        yield Part(f"{name}.bias", (hidden,))
    yield from linear("embed_positions", sizes.number("max_source_positions", 1500), hidden)
    count = sizes.number("encoder_layers" if "encoder_layers" in sizes.config else "num_hidden_layers", 32)
    yield from within(f"layers.{run(range(count))}", layer(), count)
    yield from norm("layer_norm", hidden, bias=True)


def gemma4(sizes: Sizes) -> Iterator[Part]:
    """Gemma 4's conformer. Defaults of Gemma4AudioConfig."""
    hidden, heads = sizes.number("hidden_size", 1024), sizes.number("num_attention_heads", 8)
    clipped, kernel = sizes.flag("use_clipped_linears", default=True), sizes.number("conv_kernel_size", 5)
    first, second = _channels(sizes)
    count, out = sizes.number("num_hidden_layers", 12), sizes.number("output_proj_dims", 1536)

    def layer() -> Iterator[Part]:
        for forward in ("feed_forward1", "feed_forward2"):
            yield from clippable(f"{forward}.ffw_layer_1", 4 * hidden, hidden, clipped)
            yield from clippable(f"{forward}.ffw_layer_2", hidden, 4 * hidden, clipped)
            yield from norm(f"{forward}.pre_layer_norm", hidden)
            yield from norm(f"{forward}.post_layer_norm", hidden)
        for name in ("q_proj", "k_proj", "v_proj", "post"):
            yield from clippable(f"self_attn.{name}", hidden, hidden, clipped)
        yield from linear("self_attn.relative_k_proj", hidden, hidden)
        yield Part("self_attn.per_dim_scale", (hidden // heads,))
        yield from clippable("lconv1d.linear_start", 2 * hidden, hidden, clipped)
        yield from clippable("lconv1d.linear_end", hidden, hidden, clipped)
        yield Part("lconv1d.depthwise_conv1d.weight", (hidden, 1, kernel))
        for name in ("lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out"):
            yield from norm(name, hidden)

    conv = "subsample_conv_projection"
    for number, (channels, inputs) in enumerate(((first, 1), (second, first))):
        yield Part(f"{conv}.layer{number}.conv.weight", (channels, inputs, 3, 3))
        yield from norm(f"{conv}.layer{number}.norm", channels)
    yield from linear(f"{conv}.input_proj_linear", hidden, first // 4 * second)
    yield from within(f"layers.{run(range(count))}", layer(), count)
    yield from linear("output_proj", out, hidden, bias=True)


def _channels(sizes: Sizes) -> tuple[int, int]:
    value = sizes.config.get("subsampling_conv_channels", [128, 32])
    if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int and n > 0 for n in value):
        raise faults.bad_dimension("subsampling_conv_channels", f"two numbers are expected, not {value!r:.60}.")
    return value[0], value[1]
