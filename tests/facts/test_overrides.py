"""`model.overrides` as the engine reads them: sizes, layers and caches follow; what cannot be read is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from configured import QWEN_7B
from tiny_models import TINY

from deployc import pipeline
from deployc.facts.faults import Fault
from deployc.facts.model import from_config
from deployc.facts.overrides import overridden
from deployc.types.facts import ModelFacts

MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 4096}


def model(config: dict[str, Any]) -> ModelFacts:
    return from_config(config, source="org/model", hub="huggingface", provenance="", chat_template=False)


def test_fewer_layers_are_fewer_weights_and_caches() -> None:
    """Qwen2.5-7B: a layer is q and o 3584^2, k and v 3584 x 512, biases 3584 + 2 x 512, MLP 3 x 3584 x 18944, norms."""
    whole = model(QWEN_7B)
    cut = overridden(whole, {"num_hidden_layers": 2})
    layer = 2 * 3584**2 + 2 * 3584 * 512 + 3584 + 2 * 512 + 3 * 3584 * 18944 + 2 * 3584
    assert whole.parameters - cut.parameters == 26 * layer
    assert [len(cache.layers) for cache in cut.architecture.caches] == [2]


@pytest.mark.parametrize(("window", "kind"), [(None, "full"), (1024, "sliding")])
def test_a_window_is_taken_off_or_changed(window: int | None, kind: str) -> None:
    cache = overridden(model(QWEN_7B | MISTRAL), {"sliding_window": window}).architecture.caches[0]
    assert (cache.kind, cache.window) == (kind, window or 0)


def test_nested_configurations_are_merged_and_other_objects_replaced() -> None:
    made = overridden(model(TINY["gemma3"]), {"text_config": {"sliding_window": 48}, "x": {"a": {}}})
    assert {cache.window for cache in made.architecture.caches if cache.kind == "sliding"} == {48}
    assert made.config["text_config"]["hidden_size"] == TINY["gemma3"]["text_config"]["hidden_size"]
    assert made.config["x"] == {"a": {}}
    assert made.architecture.towers == model(TINY["gemma3"]).architecture.towers


@pytest.mark.parametrize("key", ["max_position_embeddings", "rope_scaling", "rope_parameters", "rope_theta"])
def test_positions_are_left_to_the_context(key: str) -> None:
    whole = model(QWEN_7B)
    assert overridden(whole, {key: 7, "bos_token_id": 1}).architecture == whole.architecture


@pytest.mark.parametrize("wrong", [{"num_hidden_layers": -4}, {"hidden_size": "x"}, {"architectures": ["Nobody"]}])
def test_what_cannot_be_read_is_no_model(wrong: dict[str, Any]) -> None:
    with pytest.raises(Fault):
        overridden(model(QWEN_7B), wrong)


@pytest.mark.parametrize("name", sorted(TINY))
def test_every_family_can_be_overridden(name: str) -> None:
    whole = model(TINY[name])
    assert overridden(whole, {}) is whole
    made = overridden(whole, {"my_own_key": 1})
    assert (made.architecture, made.tensors) == (whole.architecture, whole.tensors)


def planned(folder: Path, overrides: dict[str, Any]) -> pipeline.Analysis:
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(QWEN_7B))
    (folder / "deploy.yaml").write_text(
        f"version: 1\nname: cut\nmodel: {{source: ./model, overrides: {json.dumps(overrides)}}}\n"
        "hardware: {gpu: a100-80}\nworkload: {input_tokens: 100, output_tokens: 20, concurrency: 4}\n"
        "engine: {version: 0.33.0}\ntarget: {kind: process}\n"
    )
    return pipeline.compile(folder / "deploy.yaml", env={})


def test_a_plan_follows_them(tmp_path: Path) -> None:
    """Two layers of 4 x 128 x 2 x 2 B a token."""
    analysis = planned(tmp_path, {"num_hidden_layers": 2})
    assert analysis.prediction is not None
    assert analysis.prediction.kv_bytes_per_token.value == 2 * 2048
    assert not [found for found in analysis.report if found.code == "DC214"]


def test_a_plan_says_which_it_does_not_follow(tmp_path: Path) -> None:
    analysis = planned(tmp_path, {"hidden_size": "x"})
    assert analysis.prediction is not None
    (said,) = [found for found in analysis.report if found.code == "DC214"]
    assert said.at is not None
    assert "hidden_size" in said.detail
