"""Adapters that the engine serves beside the model: what of them it refuses, and what a merge can still do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from configured import QWEN_7B, case_of, facts_of

from deployc.rules import adapters
from deployc.rules.adapter_shapes import cannot_be_served
from deployc.types.facts import AdapterFacts
from deployc.types.groups import compress

PAIR: dict[str, tuple[int, ...]] = {
    "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": (8, 64),
    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": (64, 8),
}


def said(tensors: Mapping[str, tuple[int, ...]] | None = None, **config: Any) -> str:
    groups = compress((name, "F32", shape) for name, shape in {**PAIR, **(tensors or {})}.items())
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


@pytest.mark.parametrize(
    ("architecture", "version", "module", "found"),
    [
        ("Qwen2ForCausalLM", "0.32.0", "lm_head", True), ("Qwen2ForCausalLM", "0.32.0", "model.embed_tokens", True),
        ("Qwen2ForCausalLM", "0.32.0", "model.layers.0.mlp.up_proj", False),
        ("LlamaForCausalLM", "0.32.0", "lm_head", False),
        ("Qwen3ForCausalLM", "0.14.0", "lm_head", True), ("Qwen3ForCausalLM", "0.16.0", "lm_head", False),
        ("MistralForCausalLM", "0.14.0", "lm_head", False), ("MistralForCausalLM", "0.32.0", "lm_head", True),
    ],
)  # fmt: skip
def test_embeddings_have_a_layer_for_adapters_in_some_classes(
    architecture: str, version: str, module: str, found: bool
) -> None:
    facts = facts_of(QWEN_7B, version=version)
    model = replace(facts.model, architecture=replace(facts.model.architecture, name=architecture))
    embedding = module.endswith("embed_tokens")
    names = ("lora_embedding_A", "lora_embedding_B") if embedding else ("lora_A.weight", "lora_B.weight")
    groups = compress((f"base_model.model.{module}.{name}", "F32", (8, 8)) for name in names)
    adapter = AdapterFacts("qa", "./qa", None, {"r": 8}, 8, "org/model", ("lm_head",), groups, {})
    facts = replace(facts, model=model, adapters=(adapter,))
    engine = f"{{version: {version}}}"
    for mode, said in (("serve", found), ("merge", False)):
        case = case_of(facts, adapters=f"[{{name: qa, source: ./qa, mode: {mode}}}]", engine=engine)
        assert [one.code for one in adapters.can_be_served(case)] == (["DC242"] if said else [])
