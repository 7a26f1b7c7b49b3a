"""What makes the versions with two engines fall back to the older one, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from handmade import QWEN_ON_4090, choices, cpu_choices, deploy_of, facts, gpu, prediction

from deployc.diagnostics import Diagnostic
from deployc.facts.engine import load, versions
from deployc.facts.lore import lore
from deployc.rules.before_v1 import falls_back
from deployc.rules.case import Case
from deployc.types.choices import Choice

SERVED = choices(adapter_mode=Choice("serve", "search", "one"))
FLOAT = choices(dtype=Choice("float32", "deploy.yaml:5", "as written"))
KV_FP8 = choices(kv_cache_dtype=Choice("fp8", "deploy.yaml:5", "as written"))


def card(major: int, minor: int) -> Any:
    return facts(card=replace(gpu("some-card"), compute_capability=(major, minor)))


def quantized(method: str) -> Any:
    known = facts()
    return replace(known, model=replace(known.model, config={"quantization_config": {"quant_method": method}}))


def said(version: str, known: Any, chosen: Any) -> list[Diagnostic]:
    of_version = replace(known, engine=load(version), lore=lore(version))
    text = QWEN_ON_4090.replace("0.32.0", version)
    return list(falls_back(Case(deploy_of(text), of_version, chosen, prediction())))


@pytest.mark.parametrize(
    ("cause", "known", "chosen", "last", "word"),
    [
        ("an old card", card(7, 5), choices(), "0.10.1.1", "compute capability 7.5 (V1: 8.0)"),
        ("float32", facts(), FLOAT, "0.9.1", "float32 (V1: bfloat16 and float16)"),
        ("served adapters", facts(), SERVED, "0.8.2", "adapters that are served"),
        ("bitsandbytes", quantized("bitsandbytes"), choices(), "0.8.2", "the checkpoint's bitsandbytes"),
        ("gguf", quantized("gguf"), choices(), "0.8.5.post1", "the checkpoint's gguf"),
        ("the CPU", facts(card=gpu("cpu")), cpu_choices(), "0.9.0.1", "the CPU"),
        ("fp8 KV on Ada", card(8, 9), KV_FP8, "0.10.2", "an fp8 KV cache on this card"),
        ("fp8 KV on Hopper", card(9, 0), KV_FP8, "0.8.1", "an fp8 KV cache on this card"),
        ("fp8 KV on Blackwell", card(10, 0), KV_FP8, "0.9.2", "an fp8 KV cache on this card"),
        ("nothing", card(8, 0), choices(), None, ""),
    ],
)
def test_versions_up_to_the_last_that_falls_back(
    cause: str, known: Any, chosen: Any, last: str | None, word: str
) -> None:
    """vllm/engine/arg_utils.py of each: :1404 (0.8.0), :1292 (0.8.5), :1192 (0.9.0), :1296 (0.10.0), :1431 (0.10.2)."""
    told = {version: said(version, known, chosen) for version in versions()}
    warned = [version for version, found in told.items() if found]
    assert warned == list(versions()[: versions().index(last) + 1 if last else 0]), cause
    for version in warned:
        [found] = told[version]
        assert (found.code, str(found.severity)) == ("DC552", "warning")
        assert word in found.detail
        assert found.fix == "set engine.version: 0.11.0 or a newer one: they have V1 alone"


def test_all_causes_at_once() -> None:
    [found] = said("0.8.0", card(7, 0), replace(FLOAT, adapter_mode=SERVED.adapter_mode))
    assert "compute capability 7.0 (V1: 8.0) and float32 (V1: bfloat16 and float16) and adapters" in found.detail
