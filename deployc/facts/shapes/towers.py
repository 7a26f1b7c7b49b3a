"""Tensors of vision towers, in the names of released checkpoints; each function is for one kind of vision_config.

Defaults of absent keys are those of the tower's configuration class in transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployc.facts import faults
from deployc.facts.shapes.mlp import GATED, triple
from deployc.facts.shapes.part import Block, Part, Sizes, linear, norm, within
from deployc.types.groups import run


def side(sizes: Sizes, key: str, default: int | None = None) -> int:
    """A length in pixels, given as a number or as two equal ones. Raises Fault DC210."""
    value = sizes.config.get(key, default)
    if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    if type(value) is not int or not 1 <= value <= 2**16:
        raise faults.bad_dimension(key, f"a length in pixels is expected, not {value!r:.60}.")
    return value


def _patches(sizes: Sizes, patch: int, image: int | None = None) -> int:
    """Patches of a whole image; `image` is the default of its side. Raises Fault DC210."""
    across = side(sizes, "image_size", image) // patch
    if not across:
        raise faults.bad_dimension("patch_size", f"{patch} pixels are more than an image has.")
    return across**2


def _layers(module: str, count: int, each: Iterator[Part]) -> Iterator[Part]:
    yield from within(f"{module}.{run(range(count))}", each, count)


def _clip_layer(hidden: int, inner: int) -> Iterator[Part]:
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        yield from linear(f"self_attn.{name}", hidden, hidden, bias=True)
    for name in ("layer_norm1", "layer_norm2"):
        yield from norm(name, hidden, bias=True)
    yield from linear("mlp.fc1", inner, hidden, bias=True)
    yield from linear("mlp.fc2", hidden, inner, bias=True)


def clip(sizes: Sizes) -> Iterator[Part]:
    """CLIP: a class token, so one position more than patches; norms before and after the layers."""
    hidden, inner = sizes.number("hidden_size", 768), sizes.number("intermediate_size", 3072)
    patch = side(sizes, "patch_size", 32)
    yield Part("embeddings.class_embedding", (hidden,))
    yield Part("embeddings.patch_embedding.weight", (hidden, 3, patch, patch))
    yield from linear("embeddings.position_embedding", _patches(sizes, patch, 224) + 1, hidden)
    yield from _layers("encoder.layers", sizes.number("num_hidden_layers", 12), _clip_layer(hidden, inner))
    yield from norm("pre_layrnorm", hidden, bias=True)  # spelt so
    yield from norm("post_layernorm", hidden, bias=True)


def siglip(sizes: Sizes) -> Iterator[Part]:
    """SigLIP, and its pooling head unless `vision_use_head` is false; engines do not load the head."""
    hidden, inner = sizes.number("hidden_size", 768), sizes.number("intermediate_size", 3072)
    patch = side(sizes, "patch_size", 16)
    yield from _patch("embeddings.patch_embedding", hidden, patch)
    yield from linear("embeddings.position_embedding", _patches(sizes, patch, 224), hidden)
    yield from _layers("encoder.layers", sizes.number("num_hidden_layers", 12), _clip_layer(hidden, inner))
    yield from norm("post_layernorm", hidden, bias=True)
    if sizes.flag("vision_use_head", default=True):
        yield Part("head.probe", (1, 1, hidden))
        yield Part("head.attention.in_proj_weight", (3 * hidden, hidden))
        yield Part("head.attention.in_proj_bias", (3 * hidden,))
        yield from linear("head.attention.out_proj", hidden, hidden, bias=True)
        yield from norm("head.layernorm", hidden, bias=True)
        yield from linear("head.mlp.fc1", inner, hidden, bias=True)
        yield from linear("head.mlp.fc2", hidden, inner, bias=True)


def _patch(name: str, hidden: int, patch: int, bias: bool = True) -> Iterator[Part]:
    yield Part(f"{name}.weight", (hidden, 3, patch, patch))
    if bias:
        yield Part(f"{name}.bias", (hidden,))


def pixtral(sizes: Sizes) -> Iterator[Part]:
    """Pixtral: no biases, rotary positions, a gated network."""
    hidden, inner = sizes.number("hidden_size", 1024), sizes.number("intermediate_size", 4096)

    def layer() -> Iterator[Part]:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield from linear(f"attention.{name}", hidden, hidden)
        yield from within("feed_forward", triple(GATED, inner, hidden))
        yield from norm("attention_norm", hidden)
        yield from norm("ffn_norm", hidden)

    yield from _patch("patch_conv", hidden, side(sizes, "patch_size", 16), bias=False)
    yield from norm("ln_pre", hidden)
    yield from _layers("transformer.layers", sizes.number("num_hidden_layers", 24), layer())


def llama4(sizes: Sizes) -> Iterator[Part]:
    """Llama 4: a class token, and an adapter that shuffles pixels by `pixel_shuffle_ratio`."""
    hidden, inner = sizes.number("hidden_size", 768), sizes.number("intermediate_size", 5632)
    patch = side(sizes, "patch_size", 14)
    ratio = sizes.config.get("pixel_shuffle_ratio", 0.5)
    if type(ratio) not in (int, float) or not 0 < ratio <= 1:
        raise faults.bad_dimension("pixel_shuffle_ratio", f"a ratio is expected, not {ratio!r:.60}.")

    def layer() -> Iterator[Part]:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield from linear(f"self_attn.{name}", hidden, hidden, bias=True)
        yield from linear("mlp.fc1", inner, hidden, bias=True)
        yield from linear("mlp.fc2", hidden, inner, bias=True)
        yield from norm("input_layernorm", hidden, bias=True)
        yield from norm("post_attention_layernorm", hidden, bias=True)

    yield Part("class_embedding", (hidden,))
    yield Part("positional_embedding_vlm", (_patches(sizes, patch, 448) + 1, hidden))
    yield from linear("patch_embedding.linear", hidden, 3 * patch * patch)
    yield from norm("layernorm_pre", hidden, bias=True)
    yield from norm("layernorm_post", hidden, bias=True)
    yield from _layers("model.layers", sizes.number("num_hidden_layers", 34), layer())
    shuffled, out = sizes.number("projector_input_dim", 4096), sizes.number("projector_output_dim", 4096)
    yield from linear("vision_adapter.mlp.fc1", shuffled, round(hidden / ratio**2))
    yield from linear("vision_adapter.mlp.fc2", out, shuffled)


def internvl(sizes: Sizes) -> Iterator[Part]:
    """InternViT as transformers writes it: a class token, learned scales of both branches."""
    hidden, inner = sizes.number("hidden_size", 1024), sizes.number("intermediate_size", 4096)
    patch = side(sizes, "patch_size", 14)
    bias, normed = sizes.flag("attention_bias", default=False), sizes.flag("use_qk_norm", default=False)
    layer_norm = sizes.config.get("norm_type", "layer_norm") == "layer_norm"

    def layer() -> Iterator[Part]:
        for name in ("q_proj", "k_proj", "v_proj"):
            yield from linear(f"attention.{name}", hidden, hidden, bias)
        yield from linear("attention.projection_layer", hidden, hidden, bias=True)
        if normed:
            yield from norm("attention.q_norm", hidden)
            yield from norm("attention.k_norm", hidden)
        yield Part("lambda_1", (hidden,))
        yield Part("lambda_2", (hidden,))
        yield from norm("layernorm_before", hidden, layer_norm)
        yield from norm("layernorm_after", hidden, layer_norm)
        yield from linear("mlp.fc1", inner, hidden, bias=True)
        yield from linear("mlp.fc2", hidden, inner, bias=True)

    yield Part("embeddings.cls_token", (1, 1, hidden))
    if sizes.flag("use_mask_token", default=False):
        yield Part("embeddings.mask_token", (1, 1, hidden))
    yield from _patch("embeddings.patch_embeddings.projection", hidden, patch)
    if sizes.flag("use_absolute_position_embeddings", default=True):
        yield Part("embeddings.position_embeddings", (1, _patches(sizes, patch, 448) + 1, hidden))
    yield from _layers("encoder.layer", sizes.number("num_hidden_layers", 24), layer())
    if not sizes.flag("use_mean_pooling", default=True):
        yield from norm("layernorm", hidden, bias=True)


def gemma4(sizes: Sizes) -> Iterator[Part]:
    """Gemma 4: positions of both axes in one table; with `use_clipped_linears` four bounds a linear layer."""
    hidden, inner = sizes.number("hidden_size", 768), sizes.number("intermediate_size", 3072)
    head_dim, heads = sizes.number("head_dim", 64), sizes.number("num_attention_heads", 12)
    kv_heads, patch = sizes.number("num_key_value_heads", 12), side(sizes, "patch_size", 16)
    clipped, bias = sizes.flag("use_clipped_linears", default=False), bool(sizes.config.get("attention_bias"))

    def layer() -> Iterator[Part]:
        for name, rows in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
            yield from clippable(f"self_attn.{name}", rows * head_dim, hidden, clipped)
        yield from clippable("self_attn.o_proj", hidden, heads * head_dim, clipped)
        for name, rows, columns in zip(GATED, (inner, inner, hidden), (hidden, hidden, inner), strict=True):
            yield from clippable(f"mlp.{name}", rows, columns, clipped)
        for name in ("q_norm", "k_norm"):
            yield from norm(f"self_attn.{name}", head_dim)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            yield from norm(f"{name}_layernorm", hidden)

    if bias:
        raise faults.unsupported("attention_bias", "a bias in the vision tower of Gemma 4.")
    yield from linear("patch_embedder.input_proj", hidden, 3 * patch * patch)
    yield Part("patch_embedder.position_embedding_table", (2, sizes.number("position_embedding_size", 10240), hidden))
    yield from _layers("encoder.layers", sizes.number("num_hidden_layers", 16), layer())
    if sizes.flag("standardize", default=False):
        yield Part("std_bias", (hidden,))
        yield Part("std_scale", (hidden,))


def clippable(name: str, rows: int, columns: int, clipped: bool) -> Iterator[Part]:
    """Gemma 4's linear layer in its towers, whose inputs and outputs may be clipped to stored bounds."""
    yield from linear(f"{name}.linear", rows, columns)
    if clipped:
        for bound in ("input_min", "input_max", "output_min", "output_max"):
            yield Part(f"{name}.{bound}", ())


def intern_vit(sizes: Sizes) -> Iterator[Part]:
    """InternViT as InternVL's own code writes it (vllm/model_executor/models/intern_vit.py)."""
    hidden, inner, patch = sizes.number("hidden_size"), sizes.number("intermediate_size"), side(sizes, "patch_size")
    layer_norm = sizes.config.get("norm_type") == "layer_norm"

    def layer() -> Iterator[Part]:
        yield from linear("attn.qkv", 3 * hidden, hidden, sizes.flag("qkv_bias", default=False))
        yield from linear("attn.proj", hidden, hidden, bias=True)
        if sizes.flag("qk_normalization", default=True):
            yield from norm("attn.q_norm", hidden)
            yield from norm("attn.k_norm", hidden)
        yield from linear("mlp.fc1", inner, hidden, bias=True)
        yield from linear("mlp.fc2", hidden, inner, bias=True)
        yield from norm("norm1", hidden, layer_norm)
        yield from norm("norm2", hidden, layer_norm)
        yield Part("ls1", (hidden,))
        yield Part("ls2", (hidden,))

    yield Part("embeddings.class_embedding", (1, 1, hidden))
    yield from _patch("embeddings.patch_embedding", hidden, patch)
    yield Part("embeddings.position_embedding", (1, _patches(sizes, patch) + 1, hidden))
    yield from _layers("encoder.layers", sizes.number("num_hidden_layers"), layer())


def idefics3(sizes: Sizes) -> Iterator[Part]:
    """SigLIP without a head, with the defaults of Idefics3VisionConfig."""
    yield from siglip(Sizes({**sizes.config, "vision_use_head": False}, sizes.arch, sizes.whole))


VISION: Mapping[str, tuple[str, Block]] = {
    "clip_vision_model": ("vision_model.", clip),
    "siglip_vision_model": ("vision_model.", siglip),
    "pixtral": ("", pixtral),
    "llama4_vision_model": ("", llama4),
    "internvl_vision": ("", internvl),
    "gemma4_vision": ("", gemma4),
}
"""By `model_type` of the vision_config: the module within the tower that released checkpoints have, and its tensors."""
