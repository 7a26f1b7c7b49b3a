"""An adapter against its model: what fits is silent, every other case has one diagnostic with the first tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from configured import QWEN_05B, facts_of

from deployc.rules.adapter_shapes import adapter_shapes
from deployc.types.architecture import Architecture
from deployc.types.facts import AdapterFacts, ModelFacts
from deployc.types.groups import Tensor, compress

ARCH = Architecture("LlamaForCausalLM", "llama", 2, 64, 96, "gqa", 4, 2, 16, 320, 512, False, "bfloat16", ())
LAYER = {"self_attn.q_proj": (64, 64), "self_attn.v_proj": (32, 64), "mlp.down_proj": (64, 96)}
BASE: list[Tensor] = [
    *((f"model.layers.{layer}.{name}.weight", "BF16", shape) for layer in range(2) for name, shape in LAYER.items()),
    *((name, "BF16", (320, 64)) for name in ("model.embed_tokens.weight", "lm_head.weight")),
]


def model(source: str = "org/small", hub: Any = "huggingface") -> ModelFacts:
    return ModelFacts(source, hub, None, {}, ARCH, compress(BASE), "header", "", {})


def pair(module: str, out: int, into: int, rank: int = 8) -> dict[str, tuple[int, ...]]:
    stem = f"base_model.model.{module}"
    return {f"{stem}.lora_A.weight": (rank, into), f"{stem}.lora_B.weight": (out, rank)}


Q = "base_model.model.model.layers.0.self_attn.q_proj"
GOOD = {k: v for layer in range(2) for k, v in pair(f"model.layers.{layer}.self_attn.q_proj", 64, 64).items()}


def adapter(tensors: Mapping[str, tuple[int, ...]] = GOOD, base: str = "org/small", **config: Any) -> AdapterFacts:
    groups = compress((name, "F32", shape) for name, shape in tensors.items())
    return AdapterFacts("qa", "./qa", None, {"r": 8, "lora_alpha": 16} | config, 8, base, ("q_proj",), groups, {})


def found(*args: Any, of: ModelFacts | None = None, **config: Any) -> list[tuple[str, str]]:
    return [(d.code, d.detail) for d in adapter_shapes(of or model(), adapter(*args, **config), None)]


def test_what_fits_is_silent() -> None:
    assert found() == []
    assert found(GOOD | pair("model.layers.0.mlp.down_proj", 64, 96) | pair("lm_head", 320, 64)) == []
    assert found(use_rslora=True, bias="none", rank_pattern={}, modules_to_save=None, use_dora=False) == []


@pytest.mark.parametrize(
    ("tensors", "code", "says"),
    [
        (pair("model.layers.7.self_attn.q_proj", 64, 64), "DC235", "model.layers.7.self_attn.q_proj"),
        (pair("transformer.h.0.attn.c_attn", 64, 64), "DC235", "org/small (llama, 2 layers) does not have"),
        (GOOD | pair("model.layers.1.self_attn.v_proj", 64, 64), "DC236", "takes [32, 64], the adapter gives [64, 64]"),
        (GOOD | pair("model.layers.1.mlp.down_proj", 64, 64), "DC236", "takes [64, 96], the adapter gives [64, 64]"),
        (pair("model.layers.0.self_attn.q_proj", 64, 64, rank=4), "DC237", "has rank 4, its config says 8"),
        ({"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": (8, 64),
          "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": (64, 4)}, "DC237", "rank 4 and 8"),
        ({"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": (8, 64)}, "DC240", "no lora_B"),
        (GOOD | {"base_model.model.model.norm.modules_to_save.weight": (64,)}, "DC235", "model.norm.weight"),
        (GOOD | {"base_model.model.lm_head.weight": (320, 32)}, "DC236", "gives [320, 32]"),
        (GOOD | {"base_model.model.model.layers.0.mlp.down_proj.weight": (65, 96)}, "DC236", "gives [65, 96]"),
        (GOOD | {"base_model.model.model.embed_tokens.lora_embedding_A": (8, 320)}, "DC240", "no lora_B"),
        (GOOD | {"base_model.model.model.embed_tokens.lora_embedding_A": (8, 321),
                 "base_model.model.model.embed_tokens.lora_embedding_B": (64, 8)}, "DC236", "gives [321, 64]"),
        (GOOD | {f"{Q}.lora_magnitude_vector": (63,)}, "DC236", "64 outputs"),
        ({f"{Q}.lora_magnitude_vector": (64,)}, "DC240", "no lora_A"),
        (GOOD | {f"{Q}.lora_B.bias": (64,)}, "DC238", "no bias"),
        (GOOD | {f"{Q}.lora_A.default.weight": (8, 64)}, "DC238", "lora_A.default"),
        (GOOD | {"base_model.model.lm_head.token_adapter.trainable_tokens_delta": (2, 64)}, "DC236", "0 tokens"),
        (GOOD | {"model.layers.0.self_attn.v_proj.lora_A.weight": (8, 64)}, "DC238", "only base_model.model."),
    ],
)  # fmt: skip
def test_one_diagnostic_a_fault(tensors: dict[str, tuple[int, ...]], code: str, says: str) -> None:
    ((got, detail),) = found(tensors)
    assert got == code
    assert says in detail
    assert "qa" in detail


def test_nothing_to_apply() -> None:
    assert [code for code, _ in found({})] == ["DC239"]
    assert [code for code, _ in found({"x.weight": (4,)})] == ["DC238", "DC239"]


@pytest.mark.parametrize(
    "config",
    [{"layer_replication": [[0, 1]]}, {"use_qalora": True}, {"arrow_config": {"a": 1}}, {"kasa_config": {"a": 1}},
     {"alora_invocation_tokens": [1]}, {"init_lora_weights": "loftq"}, {"init_lora_weights": "pissa_niter_4"}],
)  # fmt: skip
def test_features_that_are_not_supported_yet(config: dict[str, Any]) -> None:
    ((code, detail),) = found(**config)
    assert code == "DC238"
    assert f"`{next(iter(config))}`" in detail


@pytest.mark.parametrize("init", [True, False, "gaussian", "eva", "orthogonal", "pissa"])
def test_other_first_values_are_no_feature(init: Any) -> None:
    assert found(init_lora_weights=init) == []  # of "pissa" peft makes the merge


def test_the_magnitude_of_dora_must_be_there() -> None:
    assert [code for code, _ in found(use_dora=True)] == ["DC240"]
    assert (
        found(GOOD | {f"{stem}.lora_magnitude_vector": (64,) for stem in (Q, Q.replace("0", "1"))}, use_dora=True) == []
    )


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (["q_proj"], None), (["q_proj", "gate_up"], None), (".*q_proj", None), ("all-linear", None), (None, None),
        (["q_proj", "v_proj"], "lists v_proj, of which no weights"), (["v_proj"], "leaves out"),
        (".*v_proj", "leaves out"),
    ],
)  # fmt: skip
def test_targets_are_those_of_the_weights(targets: Any, says: str | None) -> None:
    diagnostics = adapter_shapes(model(), adapter(target_modules=targets), None)
    assert {d.code for d in diagnostics} == ({"DC244"} if says else set())
    assert says is None or any(says in d.detail for d in diagnostics)


def test_rank_patterns_are_the_ends_of_names() -> None:
    other = pair("model.layers.0.self_attn.q_proj", 64, 64, rank=4) | pair("model.layers.1.self_attn.q_proj", 64, 64)
    assert found(other, rank_pattern={"layers.0.self_attn.q_proj": 4}) == []
    assert found(other, rank_pattern={r".*\.0\..*": 4}) == []
    assert [code for code, _ in found(other, rank_pattern={"q_proj": 4})] == ["DC237"]


@pytest.mark.parametrize(
    ("base", "source", "hub", "severity"),
    [
        ("org/small", "org/small", "huggingface", None),
        ("/root/.cache/modelscope/hub/org/small", "org/small", "huggingface", None),
        ("/cache/Qwen/Qwen2___5-7B", "Qwen/Qwen2.5-7B", "modelscope", None),
        ("", "org/small", "huggingface", None),
        ("org/small-chat", "org/small", "huggingface", "warning"),
        ("org/small", "./model", "folder", "note"),
        ("/train/model/", "./model", "folder", None),
    ],
)
def test_another_base(base: str, source: str, hub: str, severity: str | None) -> None:
    diagnostics = adapter_shapes(model(source, hub), adapter(base=base), None)
    assert [d.severity.value for d in diagnostics] == ([severity] if severity else [])
    for d in diagnostics:
        assert d.code == "DC234"
        assert base in d.detail
        assert source in d.detail


def test_wrong_shapes_say_enough_without_the_name() -> None:
    wrong = pair("model.layers.0.self_attn.q_proj", 128, 128)
    assert [code for code, _ in found(wrong, base="org/large")] == ["DC236"]


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
        {"quant_method": "gptq", "bits": 8, "group_size": 128, "sym": True},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4"},
        {"quant_method": "fp8", "activation_scheme": "dynamic"},
    ],
)
def test_an_adapter_fits_a_packed_checkpoint_as_it_fits_the_plain_one(quantization: dict[str, Any]) -> None:
    packed = facts_of(QWEN_05B | {"quantization_config": quantization}).model
    q = pair("model.layers.0.self_attn.q_proj", 896, 896)
    down = pair("model.layers.0.mlp.down_proj", 896, 4864)
    assert found(q | down, of=packed, base="org/model") == []
    wrong = pair("model.layers.0.mlp.down_proj", 896, 896)
    assert [code for code, _ in found(wrong, of=packed, base="org/model")] == ["DC236"]


@pytest.mark.parametrize("base", ["org/small-bnb-4bit", "unsloth/small-AWQ", "/models/small-GPTQ-Int4"])
def test_the_quantized_form_of_the_model_is_no_other_base(base: str) -> None:
    assert adapter_shapes(model(), adapter(base=base), None) == []
