"""Adapters that the engine serves beside the model: what of them it refuses, and what a merge can still do."""

from __future__ import annotations

from typing import Any

import pytest

from deployc.rules.adapter_shapes import cannot_be_served
from deployc.types.facts import AdapterFacts
from deployc.types.groups import compress

PAIR = {
    "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": (8, 64),
    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": (64, 8),
}


def said(tensors: dict[str, tuple[int, ...]] | None = None, **config: Any) -> str:
    groups = compress((name, "F32", shape) for name, shape in (PAIR | (tensors or {})).items())
    adapter = AdapterFacts("qa", "./qa", None, {"r": 8, "peft_type": "LORA"} | config, 8, "", ("q_proj",), groups, {})
    found = cannot_be_served(adapter, None)
    assert all((one.code, str(one.severity), "mode: merge" in one.fix) == ("DC242", "error", True) for one in found)
    return " ".join(one.detail for one in found)


@pytest.mark.parametrize(
    "config",
    [
        {"use_dora": True}, {"lora_bias": True}, {"alora_invocation_tokens": [1, 2]}, {"layer_replication": [[0, 2]]},
        {"use_bdlora": True}, {"use_qalora": True}, {"trainable_token_indices": [7]}, {"bias": "lora_only"},
        {"init_lora_weights": "pissa"}, {"init_lora_weights": "pissa_niter_4"}, {"init_lora_weights": "olora"},
        {"init_lora_weights": "loftq"}, {"init_lora_weights": "corda"}, {"modules_to_save": ["lm_head"]},
        {"modules_to_save": ["embed_tokens", "score"]}, {"peft_type": "LOHA"}, {"peft_type": "OFT"},
    ],
)  # fmt: skip
def test_what_the_engine_refuses_is_named(config: dict[str, Any]) -> None:
    (key,) = config
    assert f"`{key}`" in said(**config)


@pytest.mark.parametrize(
    "config",
    [
        {}, {"use_dora": False}, {"init_lora_weights": True}, {"init_lora_weights": "gaussian"},
        {"init_lora_weights": "eva"}, {"modules_to_save": None}, {"modules_to_save": ["score"]}, {"bias": "none"},
        {"use_rslora": True}, {"rank_pattern": {"v_proj": 64}},
    ],
)  # fmt: skip
def test_what_it_takes_is_not(config: dict[str, Any]) -> None:
    assert said(**config) == ""


def test_embeddings_that_were_resized_are_named_where_the_config_says_nothing() -> None:
    resized = {"base_model.model.model.embed_tokens.weight": (330, 64), "base_model.model.lm_head.weight": (330, 64)}
    assert "it replaces lm_head.weight and 1 more" in said(resized)


def test_all_reasons_stand_in_one_error() -> None:
    assert said(use_dora=True, modules_to_save=["lm_head"]).count("`") == 4
