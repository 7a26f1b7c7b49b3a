"""What a method's class asks of card and type, by the shipped catalogue of versions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from configured import A100, QWEN_7B, card, case_of, facts_of

from deployc.facts.engine import load
from deployc.rules import method_limits

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}


@pytest.mark.parametrize(
    ("method", "dtype", "version", "taken"),
    [
        ("mxfp4", "float16", "0.11.0", "bfloat16"),
        ("mxfp4", "bfloat16", "0.11.0", ""),
        ("aqlm", "bfloat16", "0.9.2", "float16"),
        ("awq", "bfloat16", "0.9.2", ""),  # awq_marlin takes it
        ("gptq", "bfloat16", "0.9.2", ""),
        ("fp8", "float16", "0.9.2", ""),
    ],
)
def test_a_method_that_multiplies_in_one_type_only(method: str, dtype: str, version: str, taken: str) -> None:
    known = facts_of(QWEN_7B, cards=(A100,), version=version)
    said = {"quant_method": method, "bits": 4, "group_size": 128}
    facts = replace(
        known, engine=load(version), model=replace(known.model, config=QWEN_7B | {"quantization_config": said})
    )
    case = case_of(facts, model=f"{{source: org/model, dtype: {dtype}}}")
    found = [d for d in method_limits.method_takes_the_dtype(case) if d.code == "DC526"]
    assert [d.fix for d in found] == ([f"set model.dtype: {taken}"] if taken else [])


@pytest.mark.parametrize(
    ("named", "version", "refused"),
    [("awq_marlin", "0.9.2", True), ("awq_marlin", "0.14.0", False), ("awq", "0.9.2", False), ("fp8", "0.9.2", True)],
)
def test_a_method_named_by_hand_asks_its_own_capability(named: str, version: str, refused: bool) -> None:
    known = facts_of(QWEN_7B | {"quantization_config": AWQ}, cards=(card("t4", capability=(7, 5)),), version=version)
    case = case_of(
        replace(known, engine=load(version)), engine=f"{{version: {version}, args: {{quantization: {named}}}}}"
    )
    assert any(d.code == "DC251" for d in method_limits.named_method_runs_on_the_card(case)) == refused
