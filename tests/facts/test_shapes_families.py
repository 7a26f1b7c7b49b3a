"""Every row of the tables of families against the family's own class in transformers, built without memory.

Names are those that save_pretrained writes (`revert_weight_conversion`), which are the released ones but for the few
that `released` maps.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import JSON
from tiny_models import TINY

from deployc.facts.architecture import architecture
from deployc.facts.faults import Fault
from deployc.facts.shapes import FAMILIES, derivable, shapes
from deployc.facts.shapes.multimodal import WRAPPERS
from deployc.types.groups import expand
from deployc.types.prediction_layers import split_prediction

CLASSES = {"PhiMoEForCausalLM": "PhimoeForCausalLM"}  # named otherwise in released files than in transformers
NOT_IN_TRANSFORMERS = {
    "internlm2", "internlm3", "internvl_chat",  # code of their own repositories
    "kimi_k2",  # deepseek_v3 under another name
    "ministral3",  # in transformers only as part of a larger model; as mistral
}  # fmt: skip
ALIASES = {"qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text"}  # within their wholes

Shapes = dict[str, tuple[int, ...]]


def module_shapes(config: dict[str, Any]) -> Shapes:
    """Names and shapes of the class's own state, as save_pretrained writes them."""
    import torch
    import transformers
    from transformers.core_model_loading import revert_weight_conversion

    name = config["architectures"][0]
    built = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "architectures"})
    with torch.device("meta"):
        model = getattr(transformers, CLASSES.get(name, name))(built)
    state = revert_weight_conversion(model, dict(model.state_dict()))
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def released(name: str) -> str:
    """What save_pretrained of transformers 5 calls a tensor that releases have one module deeper."""
    return name.replace("vision_tower.vision_model.", "vision_tower.")


def stacked(tensors: Shapes) -> dict[str, int]:
    """Elements by name without the number of the expert: releases have experts one by one or all in one tensor."""
    found: dict[str, int] = defaultdict(int)
    for name, shape in tensors.items():
        kind = re.sub(r"\.experts\.(\d+\.)?(gate_proj|up_proj|gate_up_proj|down_proj)(\.weight)?$", ".experts", name)
        found[kind] += math.prod(shape)
    return dict(found)


@pytest.mark.build
@pytest.mark.parametrize("name", TINY)
def test_shapes_are_those_of_the_module(name: str) -> None:
    config = TINY[name]
    arch = architecture(config)
    own, _ = split_prediction(shapes(config, arch), arch.layers)
    derived = {released(tensor): group.shape for group in own for tensor in expand(group)}
    want = module_shapes(config)
    if arch.tie_word_embeddings:
        want = {tensor: shape for tensor, shape in want.items() if not tensor.endswith("lm_head.weight")}
    if name == "zamba2":  # one block, shared: its second reader has the same tensors
        want = {t: shape for t, shape in want.items() if not t.startswith("model.layers.3.shared_transformer.")}
    if name == "qwen3_vl_moe":
        assert stacked(derived) == stacked(want)
    else:
        assert derived == want


def test_every_row_is_compared() -> None:
    covered = {str(config["model_type"]) for config in TINY.values()}
    assert set(FAMILIES) | set(WRAPPERS) <= covered | ALIASES | NOT_IN_TRANSFORMERS


@pytest.mark.parametrize("name", TINY)
def test_patterns_name_as_many_tensors_as_they_count(name: str) -> None:
    config = TINY[name]
    assert derivable(config)
    groups = shapes(config, architecture(config))
    names = [tensor for group in groups for tensor in expand(group)]
    assert len(names) == len(set(names)) == sum(group.count for group in groups)
    assert [g.pattern for g in groups] == sorted(g.pattern for g in groups)


PARTS = ("text_config", "vision_config", "audio_config")
FURTHER = ["mamba_conv_bias", "num_nextn_predict_layers", "attention_bias", "moe_latent_size", "vision_feature_layer",
           "downsample_ratio", "word_embed_proj_dim", "deepstack_visual_indexes", "quantization_config"]  # fmt: skip


@given(st.data())
def test_an_odd_config_is_a_fault_or_has_shapes_and_never_a_traceback(data: st.DataObject) -> None:
    config = dict(TINY[data.draw(st.sampled_from(sorted(TINY)))])
    place = data.draw(st.sampled_from([None, *(part for part in PARTS if isinstance(config.get(part), dict))]))
    target: dict[str, Any] = config
    if place:
        target = config[place] = dict(config[place])
    for key in data.draw(st.lists(st.sampled_from([*sorted(target), *FURTHER]), min_size=1, max_size=3)):
        target[key] = data.draw(JSON)
    try:
        groups = shapes(config, architecture(config))
    except Fault as fault:
        assert fault.diagnostic.code in ("DC208", "DC209", "DC210")
    else:
        assert all(group.count > 0 and 0 not in group.shape for group in groups)
