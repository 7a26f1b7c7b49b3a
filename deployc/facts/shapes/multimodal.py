"""Rows of models that put an encoder before a language model: where each lies in the checkpoint, what joins them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from deployc.facts import faults
from deployc.facts.shapes import audio, qwen_towers, towers
from deployc.facts.shapes.part import Block, Part, Sizes, linear, norm

Renaming = Callable[[str], str]


def inside(name: str) -> str:
    """The language model with its output layer lies in a module: "language_model.model.layers…"."""
    return f"language_model.{name}"


def beside(name: str) -> str:
    """Language model and tower lie in `model`, the output layer outside: "model.language_model.layers…"."""
    return f"model.language_model.{name.removeprefix('model.')}" if name.startswith("model.") else name


def idefics3_text(name: str) -> str:
    """As `beside`, in another module."""
    return beside(name).replace("model.language_model.", "model.text_model.", 1)


def same(name: str) -> str:
    """The language model keeps its names."""
    return name


@dataclass(frozen=True, slots=True)
class Tower:
    """`key` is its part of config.json, `module` where it lies, `block` what is in it; None: by its own model_type.

    `join` is what leads from it to the language model, in full names. A tower whose key is absent or null is not there.
    """

    key: str
    module: str
    block: Block | None = None
    join: Block | None = None


@dataclass(frozen=True, slots=True)
class Wrapper:
    """`rename` gives the language model's tensors the names that they have in the whole."""

    rename: Renaming
    towers: tuple[Tower, ...]


def _of(sizes: Sizes, key: str, default: int | None = None) -> int:
    """A size of config.json itself, where `sizes` is the tower's."""
    return Sizes(sizes.whole, sizes.arch, sizes.whole).number(key, default)


def _flag(sizes: Sizes, key: str, default: bool) -> bool:
    return Sizes(sizes.whole, sizes.arch, sizes.whole).flag(key, default)


def _width(sizes: Sizes) -> int:
    """Hidden size of the tower, times the number of its layers that are read."""
    read = sizes.whole.get("vision_feature_layer")
    if read == []:
        raise faults.bad_dimension("vision_feature_layer", "no layer of the tower is read.")
    layers = len(read) if isinstance(read, list) else 1
    return layers * sizes.number("hidden_size")


def llava(sizes: Sizes) -> Iterator[Part]:
    """Two linear layers. Documented default of LlavaConfig: multimodal_projector_bias true."""
    bias = _flag(sizes, "multimodal_projector_bias", True)
    yield from linear("multi_modal_projector.linear_1", sizes.hidden, _width(sizes), bias)
    yield from linear("multi_modal_projector.linear_2", sizes.hidden, sizes.hidden, bias)


def llava_next(sizes: Sizes) -> Iterator[Part]:
    """And an embedding that ends a row of an image."""
    yield from llava(sizes)
    yield Part("image_newline", (sizes.hidden,))


def mistral3(sizes: Sizes) -> Iterator[Part]:
    """Patches are merged before. Documented defaults of Mistral3Config: spatial_merge_size 2, no bias."""
    hidden, bias = sizes.number("hidden_size", 1024), _flag(sizes, "multimodal_projector_bias", False)
    merged = hidden * _of(sizes, "spatial_merge_size", 2) ** 2
    yield from norm("multi_modal_projector.norm", hidden)
    yield from linear("multi_modal_projector.patch_merger.merging_layer", hidden, merged)
    yield from linear("multi_modal_projector.linear_1", sizes.hidden, _width(sizes), bias)
    yield from linear("multi_modal_projector.linear_2", sizes.hidden, sizes.hidden, bias)


def gemma3(sizes: Sizes) -> Iterator[Part]:
    hidden = sizes.number("hidden_size", 768)
    yield Part("multi_modal_projector.mm_input_projection_weight", (hidden, sizes.hidden))
    yield from norm("multi_modal_projector.mm_soft_emb_norm", hidden)


def llama4(sizes: Sizes) -> Iterator[Part]:
    yield from linear("multi_modal_projector.linear_1", sizes.hidden, sizes.number("vision_output_dim", 7680))


def internvl(sizes: Sizes) -> Iterator[Part]:
    """Pixels are shuffled before."""
    wide = _shuffled(sizes, sizes.number("hidden_size", 1024))
    yield from norm("multi_modal_projector.layer_norm", wide, bias=True)
    yield from linear("multi_modal_projector.linear_1", sizes.hidden, wide, bias=True)
    yield from linear("multi_modal_projector.linear_2", sizes.hidden, sizes.hidden, bias=True)


def internvl_chat(sizes: Sizes) -> Iterator[Part]:
    """InternVL's own code: a sequence of norm, linear layer, activation, linear layer."""
    wide = _shuffled(sizes, sizes.number("hidden_size"))
    yield from norm("mlp1.0", wide, bias=True)
    yield from linear("mlp1.1", sizes.hidden, wide, bias=True)
    yield from linear("mlp1.3", sizes.hidden, sizes.hidden, bias=True)


def _shuffled(sizes: Sizes, hidden: int) -> int:
    """Pixels are shuffled by `downsample_ratio` (documented default 0.5): so many more numbers each."""
    ratio = sizes.whole.get("downsample_ratio", 0.5)
    if type(ratio) not in (int, float) or not 0.01 < ratio <= 1:
        raise faults.bad_dimension("downsample_ratio", f"a ratio is expected, not {ratio!r:.60}.")
    return hidden * int(1 / ratio) ** 2


def aya_vision(sizes: Sizes) -> Iterator[Part]:
    """A gated network; half of its rows are the gate. Documented default of AyaVisionConfig: downsample_factor 2."""
    wide = sizes.number("hidden_size") * _of(sizes, "downsample_factor", 2) ** 2
    inner = _of(sizes, "alignment_intermediate_size", sizes.hidden)
    yield from norm("multi_modal_projector.layernorm", wide, bias=True)
    yield from linear("multi_modal_projector.linear_1", inner, wide, bias=True)
    yield from linear("multi_modal_projector.linear_2", sizes.hidden, inner // 2, bias=True)


def idefics3(sizes: Sizes) -> Iterator[Part]:
    """Documented default of Idefics3Config: scale_factor 2."""
    wide = sizes.number("hidden_size") * _of(sizes, "scale_factor", 2) ** 2
    yield from linear("model.connector.modality_projection.proj", sizes.hidden, wide)


def voxtral(sizes: Sizes) -> Iterator[Part]:
    yield from linear("multi_modal_projector.linear_1", sizes.hidden, sizes.number("intermediate_size"))
    yield from linear("multi_modal_projector.linear_2", sizes.hidden, sizes.hidden)


def gemma4_vision(sizes: Sizes) -> Iterator[Part]:
    yield from linear("model.embed_vision.embedding_projection", sizes.hidden, sizes.number("hidden_size", 768))


def gemma4_audio(sizes: Sizes) -> Iterator[Part]:
    yield from linear("model.embed_audio.embedding_projection", sizes.hidden, sizes.number("output_proj_dims", 1536))


def qwen2_audio(sizes: Sizes) -> Iterator[Part]:
    yield from linear("multi_modal_projector.linear", sizes.hidden, sizes.number("d_model", 1280), bias=True)


def _vision(join: Block | None, module: str = "vision_tower.", block: Block | None = None) -> tuple[Tower, ...]:
    return (Tower("vision_config", module, block, join),)


def _qwen(block: Block, module: str = "model.visual.") -> tuple[Tower, ...]:
    return _vision(None, module, block)


_GEMMA4 = (
    Tower("vision_config", "model.vision_tower.", towers.gemma4, gemma4_vision),
    Tower("audio_config", "model.audio_tower.", audio.gemma4, gemma4_audio),
)
_QWEN3 = qwen_towers.qwen3_vl(deepstack=True)
_QWEN3_5 = qwen_towers.qwen3_vl(deepstack=False)

WRAPPERS: Mapping[str, Wrapper] = {
    "llava": Wrapper(inside, _vision(llava)),
    "llava_next": Wrapper(inside, _vision(llava_next)),
    "mistral3": Wrapper(inside, _vision(mistral3)),
    "gemma3": Wrapper(inside, _vision(gemma3)),
    "gemma4": Wrapper(beside, _GEMMA4),
    "llama4": Wrapper(inside, _vision(llama4, "vision_model.", towers.llama4)),
    "internvl": Wrapper(inside, _vision(internvl, block=towers.internvl)),
    "internvl_chat": Wrapper(inside, _vision(internvl_chat, "vision_model.", towers.intern_vit)),
    "llava_onevision": Wrapper(inside, _vision(llava_next)),
    "aya_vision": Wrapper(inside, _vision(aya_vision)),
    "idefics3": Wrapper(idefics3_text, _vision(idefics3, "model.vision_model.", towers.idefics3)),
    "smolvlm": Wrapper(idefics3_text, _vision(idefics3, "model.vision_model.", towers.idefics3)),
    "voxtral": Wrapper(inside, (Tower("audio_config", "audio_tower.", audio.whisper, voxtral),)),
    "qwen2_vl": Wrapper(same, _qwen(qwen_towers.qwen2_vl, "visual.")),
    "qwen2_5_vl": Wrapper(same, _qwen(qwen_towers.qwen2_5_vl, "visual.")),
    "qwen3_vl": Wrapper(beside, _qwen(_QWEN3)),
    "qwen3_vl_moe": Wrapper(beside, _qwen(_QWEN3)),
    "qwen3_5": Wrapper(beside, _qwen(_QWEN3_5)),
    "qwen3_5_moe": Wrapper(beside, _qwen(_QWEN3_5)),
    "qwen2_audio": Wrapper(inside, (Tower("audio_config", "audio_tower.", audio.whisper, qwen2_audio),)),
}
"""By model_type of config.json itself."""
