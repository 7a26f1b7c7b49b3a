"""Checkpoints that are quantized as they come, and which 8 bits run: firing cases beside neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import A100, GIB, H200, HOST, QWEN_7B, SMOLLM2, card, case_of, facts_of

from deployc.diagnostics import Diagnostic
from deployc.rules import checkpoint, few_bits
from deployc.types.facts import Facts, Flag, Method

RULES = (
    checkpoint.method_is_there, checkpoint.method_runs_on_the_card, checkpoint.experts_are_read,
    checkpoint.method_divides,
    few_bits.bitsandbytes_is_slow, few_bits.fp8_checkpoint_is_widened, few_bits.int8_path,
    few_bits.int8_in_small_batches, few_bits.widened_and_bound_by_compute,
)  # fmt: skip
BUSY = "{input_tokens: 1500, output_tokens: 256, concurrency: 128, max_context: 4096}"
ALONE = "{input_tokens: 1500, output_tokens: 256, concurrency: 1, max_context: 4096}"


def of(**said: Any) -> dict[str, Any]:
    return QWEN_7B | {"quantization_config": said}


BNB4 = of(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False, bnb_4bit_quant_type="nf4")
BNB8 = of(quant_method="bitsandbytes", load_in_4bit=False, load_in_8bit=True)
FP8 = of(quant_method="fp8", activation_scheme="static")
AWQ = of(quant_method="awq", bits=4, group_size=128, zero_point=True)
GPTQ8 = of(quant_method="gptq", bits=8, group_size=128, sym=True)


def compressed(kind: str, inputs: bool) -> dict[str, Any]:
    weights = {"num_bits": 8, "type": kind, "symmetric": True, "strategy": "channel"}
    form = "pack-quantized" if not inputs else "int-quantized" if kind == "int" else "float-quantized"
    group = {"targets": ["Linear"], "weights": weights}
    group |= {"input_activations": {"num_bits": 8, "type": kind, "dynamic": True}} if inputs else {}
    return of(quant_method="compressed-tensors", format=form, ignore=["lm_head"], config_groups={"group_0": group})


def said(facts: Facts, **sections: str) -> list[Diagnostic]:
    case = case_of(facts, **sections)
    return [one for rule in RULES for one in rule(case)]


def codes(facts: Facts, **sections: str) -> dict[str, str]:
    return {one.code: str(one.severity) for one in said(facts, **sections)}


def two(config: dict[str, Any]) -> Facts:
    return facts_of(config, (A100,) * 2)


TP2 = {"engine": "{version: 0.32.0, parallel: {tensor: 2}}", "hardware": "{gpu: a100-80, count: 2}"}


@pytest.mark.parametrize(("config", "found"), [(BNB4, True), (BNB8, True), (AWQ, False), (GPTQ8, False), (FP8, False)])
def test_rows_of_bitsandbytes_are_not_cut(config: dict[str, Any], found: bool) -> None:
    assert ("DC582" in codes(two(config), **TP2)) == found
    assert "DC582" not in codes(facts_of(config, (A100,)))
    if found:
        (one,) = [d for d in said(two(config), **TP2) if d.code == "DC582"]
        assert "engine.parallel: {tensor: 1, replicas: 2}" in one.fix


def with_methods(config: dict[str, Any], **methods: Method) -> Facts:
    facts = facts_of(config, (A100,))
    return replace(facts, engine=replace(facts.engine, methods=methods))


def test_methods_that_moved_and_methods_that_never_were() -> None:
    known = {"awq": Method(), "bitsandbytes": Method(plugin="vllm-bnb-plugin")}
    (moved,) = [d for d in said(with_methods(BNB4, **known)) if d.code == "DC583"]
    assert "moved to vllm-bnb-plugin" in moved.detail
    assert "engine.image" in moved.fix
    (never,) = [d for d in said(with_methods(GPTQ8, **known)) if d.code == "DC583"]
    assert "has no gptq of its own." in never.detail
    assert "DC583" not in codes(with_methods(AWQ, **known))
    assert "DC583" not in codes(with_methods(GPTQ8, auto_gptq=Method()))
    assert "DC583" not in codes(with_methods(QWEN_7B, **known))
    assert "DC583" not in codes(with_methods(BNB4))  # nothing is known of this version's


def test_a_method_that_a_flag_names_is_replaced_by_weights_of_ours() -> None:
    facts = with_methods(QWEN_7B, bitsandbytes=Method(plugin="vllm-bnb-plugin"))
    facts = replace(
        facts, engine=replace(facts.engine, flags={**facts.engine.flags, "quantization": Flag("quantization", "str")})
    )
    asked = {"engine": "{version: 0.32.0, args: {quantization: bitsandbytes}}"}
    (found,) = [d for d in said(facts, **asked) if d.code == "DC583"]
    assert found.fix.startswith("remove engine.args.quantization and set quantization.weights: int8")
    assert "DC583" not in codes(facts, engine="{version: 0.32.0, args: {quantization: unheard-of}}")


def test_eight_bits_of_bitsandbytes_are_slow_most_of_all_alone() -> None:
    (alone,) = [d for d in said(facts_of(BNB8, (A100,)), workload=ALONE) if d.code == "DC584"]
    assert "With 1 in flight that was 4 times slower" in alone.detail
    (busy,) = [d for d in said(facts_of(BNB8, (A100,)), workload=BUSY) if d.code == "DC584"]
    assert "4 times" not in busy.detail
    assert "DC584" not in codes(facts_of(BNB4, (A100,)), workload=ALONE)
    assert "DC584" not in codes(facts_of(QWEN_7B, (A100,)), workload=ALONE)


@pytest.mark.parametrize(("capability", "found"), [((8, 0), True), ((8, 6), True), ((8, 9), False), ((9, 0), False)])
def test_fp8_of_a_checkpoint_is_widened_below_its_units(capability: tuple[int, int], found: bool) -> None:
    one = card("odd", 79 * GIB, capability=capability)
    for config in (FP8, compressed("float", inputs=True)):
        assert ("DC258" in codes(facts_of(config, (one,)))) == found
    assert "DC258" not in codes(facts_of(AWQ, (one,)))


@pytest.mark.parametrize(
    ("config", "weights", "severity"),
    [
        (QWEN_7B, "int8", "note"), (QWEN_7B, "int8-weight-only", "warning"), (QWEN_7B, "fp8", None),
        (QWEN_7B, "none", None), (compressed("int", inputs=True), "checkpoint", "note"),
        (compressed("int", inputs=False), "checkpoint", "warning"), (GPTQ8, "checkpoint", "warning"),
        (BNB8, "checkpoint", None), (AWQ, "checkpoint", None), (FP8, "checkpoint", None),
    ],
)  # fmt: skip
def test_which_int8_runs_is_said(config: dict[str, Any], weights: str, severity: str | None) -> None:
    assert codes(facts_of(config), quantization=f"{{weights: {weights}}}").get("DC586") == severity


def test_int8_that_nobody_asked_for_is_not_explained() -> None:
    assert "DC586" not in codes(facts_of(QWEN_7B, (A100,)), quantization="{weights: auto}")
    assert "DC586" not in codes(facts_of(SMOLLM2, (HOST,)), quantization="{weights: int8}")


@pytest.mark.parametrize(("flight", "found"), [(8, False), (16, False), (17, True), (64, True), (65, False)])
def test_batches_that_int8_is_not_tuned_for_on_ada(flight: int, found: bool) -> None:
    load = f"{{input_tokens: 200, output_tokens: 56, concurrency: {flight}, max_context: 2048}}"
    asked = {"quantization": "{weights: int8}", "workload": load}
    assert ("DC587" in codes(facts_of(QWEN_7B), **asked)) == found
    assert "DC587" not in codes(facts_of(QWEN_7B, (A100,)), **asked)
    assert "DC587" not in codes(facts_of(QWEN_7B), quantization="{weights: fp8}", workload=load)


def test_few_bits_and_products_that_are_the_limit() -> None:
    assert case_of(facts_of(AWQ, (H200,)), workload=BUSY).prediction.bound_by == "compute"
    (found,) = [d for d in said(facts_of(AWQ, (H200,)), workload=BUSY) if d.code == "DC585"]
    assert (str(found.severity), "Weights of 4 bits are widened" in found.detail) == ("warning", True)
    assert "quantization.weights: fp8" in found.fix
    assert "DC585" in codes(facts_of(QWEN_7B, (H200,)), workload=BUSY, quantization="{weights: int4-rtn}")
    assert "take the 16-bit model" in found.fix
    volta = card("v100-32", 31.7 * GIB, 9e11, (7, 0), 112e12)
    old = [d for d in said(facts_of(GPTQ8, (volta,)), workload=BUSY) if d.code in ("DC585", "DC586")]
    assert old and all(
        d.fix == "take the 16-bit model (by its name org/model; a guess) where memory suffices"
        or d.fix == "take the 16-bit model where memory suffices"
        for d in old
    )
    assert "DC585" not in codes(facts_of(AWQ, (H200,)), workload=BUSY, quantization="{weights: int4-rtn}")  # DC250
    assert "DC585" not in codes(facts_of(AWQ, (H200,)), workload=ALONE)
    assert "DC585" not in codes(facts_of(QWEN_7B, (H200,)), workload=BUSY, quantization="{weights: fp8}")
    assert "DC585" not in codes(facts_of(QWEN_7B, (H200,)), workload=BUSY)


NVFP4 = of(
    quant_method="compressed-tensors", format="nvfp4-pack-quantized", ignore=["lm_head"],
    config_groups={"group_0": {"targets": ["Linear"], "input_activations": {"num_bits": 4, "type": "float"},
                               "weights": {"num_bits": 4, "type": "float", "group_size": 16, "symmetric": True}}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("config", "capability", "version", "found"),
    [
        (compressed("int", inputs=True), (12, 0), "0.32.0", True),
        (compressed("int", inputs=True), (8, 9), "0.32.0", False),
        (compressed("int", inputs=False), (7, 0), "0.32.0", True),
        (compressed("int", inputs=False), (7, 5), "0.32.0", False),
        (FP8, (7, 5), "0.12.0", True), (FP8, (7, 5), "0.32.0", False), (FP8, (7, 0), "0.32.0", True),
        (NVFP4, (7, 0), "0.32.0", True), (NVFP4, (10, 0), "0.32.0", False), (AWQ, (7, 5), "0.32.0", False),
        (AWQ, (7, 0), "0.32.0", True), (GPTQ8, (7, 5), "0.32.0", False), (QWEN_7B, (7, 0), "0.32.0", False),
    ],
)  # fmt: skip
def test_formats_of_checkpoints_by_card(
    config: dict[str, Any], capability: tuple[int, int], version: str, found: bool
) -> None:
    facts = facts_of(config, (card("odd", 79 * GIB, capability=capability),), version)
    half = {"model": "{source: org/model, dtype: float16}", "engine": f"{{version: {version}}}"}
    assert ("DC251" in codes(facts, **half)) == found


def test_a_capability_that_the_method_asks_for() -> None:
    facts = with_methods(BNB4, bitsandbytes=Method(least=(9, 0)))
    (found,) = [d for d in said(facts) if d.code == "DC251"]
    assert "bitsandbytes weights" in found.detail and "from 9.0 on" in found.detail
    assert "DC251" not in codes(with_methods(BNB4, bitsandbytes=Method(least=(8, 0))))


MOE = QWEN_7B | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 768,
    "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True,
}  # fmt: skip


def test_experts_in_eight_bits_of_bitsandbytes() -> None:
    for config, found in ((BNB8, True), (BNB4, False)):
        mixture = MOE | {"quantization_config": config["quantization_config"]}
        assert ("DC583" in codes(facts_of(mixture, (H200,)))) == found
        assert "DC583" not in codes(facts_of(config, (H200,)))


@pytest.mark.parametrize("nested", [True, False])
def test_an_algorithm_of_modelopt_is_asked_for_its_own_capability(nested: bool) -> None:
    """`modelopt` itself asks 8.9; NVFP4 runs from 8.0 on, widened."""
    said = {"quant_algo": "NVFP4"}
    known = facts_of(of(quant_method="modelopt", **({"quantization": said} if nested else said)), cards=(A100,))
    methods = {"modelopt": Method((8, 9)), "modelopt_fp4": Method((8, 0))}
    for config, refused in ((known.model.config, False), (of(quant_method="modelopt", quant_algo="FP8"), True)):
        facts = replace(known, engine=replace(known.engine, methods=methods), model=replace(known.model, config=config))
        assert any(d.code == "DC251" for d in checkpoint.method_runs_on_the_card(case_of(facts))) == refused
