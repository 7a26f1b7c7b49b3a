"""Headers against config.json: strict where names are exactly known, by size elsewhere; layers that predict ahead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_models import put, safetensors, tensors_of
from tiny_models import TINY

from deployc.diagnostics import Diagnostic
from deployc.facts.architecture import architecture
from deployc.facts.faults import Fault
from deployc.facts.folder import Folder
from deployc.facts.model import model_facts
from deployc.facts.shapes import derivable, shapes, strict
from deployc.types.facts import ModelFacts, TensorGroup
from deployc.types.groups import Tensor
from deployc.types.prediction_layers import split_prediction


def read(path: Path, config: dict[str, Any], tensors: list[Tensor] | None) -> tuple[ModelFacts, list[Diagnostic]]:
    files = {"config.json": json.dumps(config).encode()}
    if tensors is not None:
        files["model.safetensors"] = safetensors(tensors)
    return model_facts(Folder(put(path, files), "./m"), "./m")


@pytest.mark.parametrize("name", ["llama", "qwen3_moe", "gemma2", "deepseek_v3", "gpt_oss", "mistral3", "qwen3_5"])
def test_derived_tensors_are_those_promised(tmp_path: Path, name: str) -> None:
    facts, notes = read(tmp_path, TINY[name], tensors_of(TINY[name]))
    assert notes == []
    assert facts.weights_basis == "header"
    assert facts.parameters == sum(g.elements for g in shapes(TINY[name], architecture(TINY[name])))


def test_other_names_are_no_fault_where_names_are_not_exactly_known(tmp_path: Path) -> None:
    """The 8 experts of each layer in one tensor, as releases of Qwen3-VL have them: same elements, other names."""
    config = TINY["qwen3_vl_moe"]
    one_by_one = tensors_of(config)
    stacked: list[Tensor] = [t for t in one_by_one if ".mlp.experts." not in t[0]]
    for layer in range(4):
        experts = f"model.language_model.layers.{layer}.mlp.experts"
        stacked += [(f"{experts}.gate_up_proj", "BF16", (8, 64, 48)), (f"{experts}.down_proj", "BF16", (8, 24, 64))]
    facts, notes = read(tmp_path, config, stacked)
    assert notes == []
    assert facts.parameters == sum(g.elements for g in shapes(config, architecture(config)))


def test_further_tensors_are_counted_and_warned_of_where_they_are_many(tmp_path: Path) -> None:
    config = TINY["gemma2"]
    tensors = tensors_of(config)
    few = [*tensors, ("model.extra.weight", "BF16", (8, 8))]
    facts, notes = read(tmp_path / "few", config, few)
    assert (notes, facts.parameters) == ([], sum(g.elements for g in shapes(config, architecture(config))) + 64)
    _, notes = read(tmp_path / "many", config, [*tensors, ("model.extra.weight", "BF16", (100, 100))])
    assert [d.code for d in notes] == ["DC229"]
    assert "elements" in notes[0].detail


def test_one_name_of_another_size_is_a_fault_everywhere(tmp_path: Path) -> None:
    config = TINY["gemma2"]
    name = "model.layers.0.mlp.up_proj.weight"
    changed: list[Tensor] = [(n, d, (97, 64) if n == name else s) for n, d, s in tensors_of(config)]
    with pytest.raises(Fault, match=r"DC222.*up_proj.weight is \[97, 64\], and \[96, 64\] by config.json"):
        read(tmp_path, config, changed)


def test_a_tied_output_layer_of_several_modalities_is_loaded_once(tmp_path: Path) -> None:
    config = TINY["gemma3"]
    copy = ("language_model.lm_head.weight", "BF16", (320, 64))
    facts, notes = read(tmp_path, config, [*tensors_of(config), copy])
    assert notes == []
    assert not any("lm_head" in group.pattern for group in facts.tensors)


def test_a_save_without_the_layers_that_predict_is_no_fault(tmp_path: Path) -> None:
    config = TINY["deepseek_v3"]
    left: list[Tensor] = [t for t in tensors_of(config) if not t[0].startswith("model.layers.4.")]
    assert len(left) < len(tensors_of(config))
    assert read(tmp_path, config, left)[1] == []


@pytest.mark.parametrize("said", [0, None])
def test_a_model_need_not_predict_further(said: int | None) -> None:
    config = TINY["deepseek_v3"] | {"num_nextn_predict_layers": said}
    assert split_prediction(shapes(config, architecture(config)), 4)[1] == []


def test_a_family_without_derivable_tensors_needs_its_weights(tmp_path: Path) -> None:
    """Gemma 3n's vision tower is a convolutional network of a library of its own."""
    language = {k: v for k, v in TINY["gemma3n_text"].items() if k not in ("architectures", "dtype")}
    config = {"model_type": "gemma3n", "architectures": ["Gemma3nForConditionalGeneration"], "dtype": "bfloat16",
              "text_config": language}  # fmt: skip
    assert not derivable(config)
    with pytest.raises(Fault, match=r"DC209.*gemma3n"):
        read(tmp_path / "none", config, None)
    facts, notes = read(tmp_path / "some", config, [("model.language_model.embed_tokens.weight", "BF16", (320, 64))])
    assert (notes, facts.parameters) == ([], 320 * 64)


def test_a_tower_that_is_not_known_is_named() -> None:
    config = TINY["llava"] | {"vision_config": TINY["llava"]["vision_config"] | {"model_type": "siglip_vision_model"}}
    assert shapes(config, architecture(config))
    odd = TINY["qwen2_audio"] | {"audio_config": "whisper"}
    with pytest.raises(Fault, match=r"DC210.*audio_config"):
        shapes(odd, architecture(TINY["qwen2_audio"]))


def test_which_families_are_strict() -> None:
    assert all(strict(TINY[name]) for name in ("llama", "mistral", "qwen2", "qwen3", "phi3", "mixtral", "qwen3_moe"))
    assert not any(strict(TINY[name]) for name in ("gemma2", "deepseek_v3", "mistral3", "gpt2", "qwen3_next"))


# --- layers that predict further tokens ------------------------------------------------------------------------------


def group(pattern: str, count: int = 1) -> TensorGroup:
    return TensorGroup(pattern, "BF16", (8,), count)


def test_a_group_that_runs_over_both_is_divided() -> None:
    own, ahead = split_prediction([group("model.layers.{0-61}.mlp.experts.{0-7}.up_proj.weight", 62 * 8)], 61)
    assert own == [group("model.layers.{0-60}.mlp.experts.{0-7}.up_proj.weight", 61 * 8)]
    assert ahead == [group("model.layers.61.mlp.experts.{0-7}.up_proj.weight", 8)]


@pytest.mark.parametrize(
    "name",
    [
        "mtp.layers.0.self_attn.q_proj.weight",
        "mtp.fc.weight",
        "model.mtp_layers.0.input_layernorm.weight",
        "model.mtp.0.norm.weight",
        "model.language_model.layers.4.mlp.up_proj.weight",
        "language_model.model.layers.{4-5}.mlp.up_proj.weight",
    ],
)
def test_names_of_layers_that_predict(name: str) -> None:
    assert split_prediction([group(name, 2)], 4) == ([], [group(name, 2)])


@pytest.mark.parametrize(
    "name",
    [
        "vision_tower.vision_model.encoder.layers.{0-26}.mlp.fc1.weight",
        "audio_tower.layers.{0-31}.fc1.weight",
        "model.visual.blocks.{0-26}.attn.qkv.weight",
        "transformer.h.{0-47}.attn.c_attn.weight",
        "model.embed_tokens.weight",
    ],
)
def test_towers_have_layers_of_their_own(name: str) -> None:
    assert split_prediction([group(name, 3)], 4) == ([group(name, 3)], [])
