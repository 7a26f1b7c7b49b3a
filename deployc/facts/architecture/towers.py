"""Vision and audio encoders beside the language model, from `vision_config` and `audio_config`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from deployc.facts import faults
from deployc.facts.architecture.classes import defaults
from deployc.facts.architecture.keys import Keys
from deployc.types.architecture import Tower
from deployc.types.config import Config


@dataclass(frozen=True, slots=True)
class Item:
    """Where it stands how many embeddings the largest item of one tower becomes."""

    whole: Keys  # config.json
    tower: Keys
    preprocessor: Keys  # preprocessor_config.json; empty where the source has none
    side: int  # patches a side of the image that the tower takes; 0 = any


Tokens = Callable[[Item], int]
"""Embeddings of the largest item; 0 = these files do not say."""

_LAYERS = ("num_hidden_layers", "depth", "encoder_layers", "conf_num_hidden_layers")
_HIDDEN = ("embed_dim", "d_model", "hidden_size")
"""Qwen2-VL's `hidden_size` is the language model's; its own width is `embed_dim`."""
_HEADS = ("num_attention_heads", "num_heads", "encoder_attention_heads", "conf_num_attention_heads")
_WIDTH = ("intermediate_size", "encoder_ffn_dim")


def tower(
    config: Keys, key: str, kind: Literal["vision", "audio"], like: str, tokens: Tokens, preprocessor: Config
) -> Tower | None:
    """The encoder under `key`; None where the file has none. Raises Fault DC210.

    `like` is the model_type whose class it has where it names none itself.
    """
    values = config.get(key)
    if values is None:
        return None
    if not isinstance(values, dict):
        raise faults.bad_dimension(config.shown(key), f"an object is expected, not {values!r:.60}.")
    keys = Keys(values, f"{key}.", defaults=defaults(_class(values, like)))
    hidden, patch, image = _first(keys, _HIDDEN), _side(keys, "patch_size"), _side(keys, "image_size")
    width = _first(keys, _WIDTH) or int(_number(keys.get("mlp_ratio")) * hidden)
    return Tower(
        kind=kind,
        layers=_first(keys, _LAYERS),
        hidden_size=hidden,
        intermediate_size=width,
        heads=_first(keys, _HEADS),
        patch_size=patch,
        image_size=image,
        tokens=tokens(Item(config, keys, Keys(preprocessor), image // patch if patch else 0)),
    )


def unknown(_item: Item) -> int:
    """These files do not say how large an item may be."""
    return 0


def named(key: str, other: int) -> Tokens:
    """A key of the whole config counts them; absent it is `other`, its class's default."""
    return lambda item: item.whole.option(key, other)


def patches(item: Item) -> int:
    """One for each patch (LLaVA 1.5: the class token is left out)."""
    return item.side**2


def merged(item: Item) -> int:
    """Patches of the largest image, `spatial_merge_size` squared into one (Mistral 3)."""
    return (item.side // (item.whole.option("spatial_merge_size", 2) or 2)) ** 2


def pixels(item: Item) -> int:
    """Qwen-VL takes images of any form up to so many pixels (qwen2_vl.py, get_image_size_with_most_features).

    `max_pixels` in older preprocessors, `size.longest_edge` in newer ones.
    """
    size = item.preprocessor.get("size")
    most = item.preprocessor.option("max_pixels")
    if isinstance(size, dict) and not most:
        most = Keys(size).option("longest_edge") or Keys(size).option("max_pixels")
    unit = item.tower.option("patch_size") * item.tower.option("spatial_merge_size", 2)
    return most // unit**2 if unit else 0


def pooled(item: Item) -> int:
    """Gemma 4 pools an image to `default_output_length` (gemma4_mm.py)."""
    return item.tower.option("default_output_length") or item.whole.option("vision_soft_tokens_per_image")


def internvl(item: Item) -> int:
    """The most tiles, and the whole image as one more; each becomes `image_seq_length` (internvl.py)."""
    most = item.preprocessor.option("max_patches")
    return (most + 1) * item.whole.option("image_seq_length", 256) if most else 0


def internvl_chat(item: Item) -> int:
    """The same in the model's own files: patches of a tile, shrunk by `downsample_ratio` on each side."""
    most = item.whole.option("max_dynamic_patch")
    each = int((item.side * _number(item.whole.get("downsample_ratio"))) ** 2)
    return (most + 1) * each


def llama4(item: Item) -> int:
    """The most tiles and the whole image, patches shrunk by `pixel_shuffle_ratio` on each side (mllama4.py)."""
    most = item.preprocessor.option("max_patches")
    return (most + 1) * int((item.side * _number(item.tower.get("pixel_shuffle_ratio"))) ** 2) if most else 0


def tiles(item: Item) -> int:
    """LLaVA-NeXT: the whole image once more beside the largest grid of tiles, each row with a newline token.

    vllm/model_executor/models/llava_next.py: base patches + grid height x (grid width + 1).
    """
    sizes, side = item.whole.get("image_grid_pinpoints"), item.side
    if not side or not isinstance(sizes, list):
        return 0
    image, grids = _side(item.tower, "image_size"), []
    for size in sizes:
        if isinstance(size, list) and len(size) == 2 and all(type(n) is int and 0 < n < 2**20 for n in size):
            high, wide = (n // image * side for n in size)
            grids.append(high * (wide + 1))
    return side * side + max(grids, default=0)


def halved(item: Item) -> int:
    """Qwen2-Audio: frames after pooling in pairs (vllm/model_executor/models/qwen2_audio.py)."""
    return item.tower.option("max_source_positions") // 2


def _class(values: Config, like: str) -> str:
    """Older files repeat the whole's model_type here, which is no class of an encoder."""
    named = values.get("model_type")
    return named if isinstance(named, str) and any(key in defaults(named) for key in _LAYERS) else like


def _first(keys: Keys, names: tuple[str, ...]) -> int:
    """The first of several names that is there; the class's defaults come last."""
    for name in (*(n for n in names if keys.given(n)), *names):
        if keys.get(name) is not None:
            return keys.whole(name, keys.get(name))
    return 0


def _side(keys: Keys, key: str) -> int:
    value = keys.get(key)
    if isinstance(value, list | tuple) and value:
        return max(keys.whole(key, side) for side in value)
    return keys.option(key)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 < value < 1000 else 0.0
