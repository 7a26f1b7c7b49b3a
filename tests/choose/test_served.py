"""What a merge changes of the model's shape is counted as if the model had been so, and said; serving refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from configured import QWEN_05B, QWEN_7B, case_of, codes, facts_of, yaml_of
from handmade import deploy_of

from deployc.choose.served import as_served
from deployc.rules.adapter_shapes import merged
from deployc.rules.adapters import belongs_to_the_model, can_be_served
from deployc.types.facts import AdapterFacts, Facts
from deployc.types.groups import compress

STEM = "base_model.model."
LAYER = {f"{STEM}model.layers.0.self_attn.q_proj.lora_A.weight": (8, 896),
         f"{STEM}model.layers.0.self_attn.q_proj.lora_B.weight": (896, 8)}  # fmt: skip
EMBEDDINGS = {f"{STEM}model.embed_tokens.weight": (151_940, 896), f"{STEM}lm_head.weight": (151_940, 896)}
OUTPUT = {f"{STEM}lm_head.weight": (151_936, 896)}
Tensors = Mapping[str, tuple[int, ...]]
MERGE = "[{name: a, source: ./a}]"
SERVE = "[{name: a, source: ./a, mode: serve}]"


def facts(tensors: Tensors, model: dict[str, Any] = QWEN_05B, **config: Any) -> Facts:
    groups = compress((name, "F32", shape) for name, shape in {**LAYER, **tensors}.items())
    told = {"peft_type": "LORA", "r": 8, "lora_alpha": 16} | config
    adapter = AdapterFacts("a", "./a", None, told, 8, "org/model", ("q_proj",), groups, {})
    return replace(facts_of(model), adapters=(adapter,))


def served(tensors: Tensors, adapters: str = MERGE, **config: Any) -> Facts:
    return as_served(deploy_of(yaml_of(adapters=adapters)), facts(tensors, **config))


def weights(known: Facts, adapters: str | None = None) -> float:
    sections = {} if adapters is None else {"adapters": adapters}
    return case_of(known, **sections).prediction.memory.weights.value


@pytest.mark.parametrize(
    ("tensors", "config", "alike"),
    [
        ({}, {}, {}),
        (EMBEDDINGS, {}, {"vocab_size": 151_940}),
        (EMBEDDINGS, {"modules_to_save": ["embed_tokens", "lm_head"]},
         {"vocab_size": 151_940, "tie_word_embeddings": False}),
        (OUTPUT, {"modules_to_save": ["lm_head"]}, {"tie_word_embeddings": False}),
    ],
)  # fmt: skip
def test_counted_as_a_model_of_that_shape(tensors: Tensors, config: dict[str, Any], alike: dict[str, Any]) -> None:
    known = served(tensors, **config)
    wanted = facts_of(QWEN_05B | alike)
    assert known.model.tensors == wanted.model.tensors
    assert known.model.architecture == wanted.model.architecture
    assert known.model.config == wanted.model.config
    assert weights(known, MERGE) == weights(wanted)
    assert (known.base is not None) == bool(alike)
    assert known.unmerged.architecture == facts_of(QWEN_05B).model.architecture


def test_said_by_the_rule_with_names() -> None:
    found = [d for d in belongs_to_the_model(case_of(served(OUTPUT, modules_to_save=["lm_head"]), adapters=MERGE))]
    (said,) = [d for d in found if d.code == "DC243"]
    assert "lm_head.weight [151936, 896] is added" in said.detail
    assert said.severity.value == "warning"
    assert not [d for d in found if d.severity.value == "error"]


def test_several_adapters_are_served_as_they_are() -> None:
    both = as_served(deploy_of(yaml_of(adapters=SERVE)), facts(OUTPUT))
    assert both.base is None


@pytest.mark.parametrize(
    ("tensors", "config", "says"),
    [
        (OUTPUT, {"modules_to_save": ["lm_head"]}, "`modules_to_save` has lm_head"),
        ({}, {"use_dora": True}, "`use_dora`"),
        ({}, {"bias": "all"}, "`bias`"),
        ({}, {"lora_bias": True}, "`lora_bias`"),
        ({}, {"init_lora_weights": "pissa"}, "`init_lora_weights`"),
        ({}, {"peft_type": "IA3"}, "`peft_type`"),
        (EMBEDDINGS, {}, "it replaces lm_head.weight and 1 more"),
    ],
)
def test_what_the_engine_has_no_layer_for(tensors: Tensors, config: dict[str, Any], says: str) -> None:
    case = case_of(facts(tensors, **config), adapters=SERVE)
    (found,) = can_be_served(case)
    assert (found.code, found.severity.value, says in found.detail) == ("DC242", "error", True)
    assert not list(can_be_served(case_of(facts(tensors, **config), adapters=MERGE)))


def test_plain_pairs_can_be_served() -> None:
    assert "DC242" not in codes(facts({}, init_lora_weights="gaussian", modules_to_save=None), adapters=SERVE)


def test_what_cannot_be_merged_is_not_refused_where_it_is_served() -> None:
    known = facts({f"{STEM}model.layers.0.self_attn.q_proj.lora_A.default.weight": (8, 896)})
    assert "DC238" in codes(known, adapters=MERGE)
    assert "DC238" not in codes(known, adapters=SERVE)


def test_a_merge_by_peft_says_its_memory() -> None:
    known = replace(facts({}, peft_type="LOHA"), model=facts_of(QWEN_7B).model)
    (said,) = [d for d in belongs_to_the_model(case_of(known, adapters=MERGE)) if d.code == "DC249"]
    assert "GiB" in said.detail


@pytest.mark.parametrize(("model_type", "code"), [("gemma2", "DC238"), ("qwen2", "DC243")])
def test_an_engine_with_one_embedding_cannot_have_two(model_type: str, code: str) -> None:
    known = facts(OUTPUT, modules_to_save=["lm_head"])
    model = replace(known.model, architecture=replace(known.model.architecture, model_type=model_type))
    assert [d.code for d in merged(model, known.adapters).diagnostics] == [code]
    alike = replace(known.adapters[0], config={**known.adapters[0].config, "ensure_weight_tying": True})
    assert merged(model, [alike]).config == {"tie_word_embeddings": False}  # the embedding is not in the file
