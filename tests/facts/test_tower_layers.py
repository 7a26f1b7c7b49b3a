"""What of a vision tower the engine leaves in the file."""

from __future__ import annotations

from typing import Any

import pytest
from test_shapes_published import PUBLISHED

from deployc.facts.architecture import architecture
from deployc.facts.shapes import shapes
from deployc.types.facts import TensorGroup
from deployc.types.tower_layers import without_unread


def elements(name: str, **changed: Any) -> int:
    config = PUBLISHED[name][0]
    return sum(t.elements for t in without_unread(shapes(config, architecture(config)), config | changed))


def test_the_pooling_head_of_siglip_is_not_loaded() -> None:
    """granite-vision-3.3-2b reads the last of its 27 layers, so all are made, but neither head nor last norm.

    By hand, H = 1152, I = 4304. Head: probe H, in_proj 3 H^2 + 3 H, out_proj H^2 + H, norm 2 H, network 2 H I + I + H;
    last norm 2 H. The engine logged 5.54 GiB (H100, vLLM 0.19.0): 5.51 GiB are left at 16 bit, and loading adds some
    0.02 (granite-3.1-2b: 4.72 GiB and 4.74 logged).
    """
    hidden, inner = 1152, 4304
    head = hidden + 3 * hidden**2 + 3 * hidden + hidden**2 + hidden + 2 * hidden + 2 * hidden * inner + inner + hidden
    assert PUBLISHED["granite-vision-3.3-2b"][1] - elements("granite-vision-3.3-2b") == head + 2 * hidden


@pytest.mark.parametrize(("read", "left"), [(-2, 23), (-1, 24), ([-3, -10], 22), (5, 5), (None, 24), ("odd", 24)])
def test_layers_behind_the_deepest_one_read_are_not_loaded(read: Any, left: int) -> None:
    """A layer of CLIP L: 4 (H^2 + H) of attention, 2 H I + I + H, two norms 4 H; last norm 2 H. H = 1024, I = 4096."""
    hidden, inner = 1024, 4096
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    whole = PUBLISHED["llava-1.5-7b-hf"][1]
    assert elements("llava-1.5-7b-hf", vision_feature_layer=read) == whole - 2 * hidden - (24 - left) * layer


def test_an_absent_key_is_the_default_of_its_class() -> None:
    """-2: the last but one, so 23 layers."""
    assert elements("llava-1.5-7b-hf") == elements("llava-1.5-7b-hf", vision_feature_layer=-2)


def test_other_models_keep_their_tower_but_for_the_head() -> None:
    assert elements("gemma-3-12b") == PUBLISHED["gemma-3-12b"][1]
    head = TensorGroup("vision_tower.vision_model.head.probe", "BF16", (1, 1, 8))
    assert without_unread([head], PUBLISHED["gemma-3-12b"][0]) == []
    assert elements("Mistral-Small-3.1-24B") == PUBLISHED["Mistral-Small-3.1-24B"][1]
    assert elements("Qwen2.5-VL-7B") == PUBLISHED["Qwen2.5-VL-7B"][1]
