"""The text in the recipe: which formats it is a part of, and what the artifact's key depends on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, facts

from deployc.emit import calibration
from deployc.emit.recipe import recipe
from deployc.types.bundle import Recipe, Text
from deployc.types.choices import Choice

DATA = {"data": "./c.jsonl", "samples": 64, "tokens": 512}


def made(weights: str, digests: dict[str, str] | None = None, **quantization: Any) -> Recipe:
    deploy = deploy_of(QWEN_ON_4090 + f"quantization: {json.dumps(quantization)}\n" if quantization else QWEN_ON_4090)
    known = replace(facts(), texts={"./c.jsonl": "sha256:aa", "./q.jsonl": "sha256:bb"} if digests is None else digests)
    found = recipe(deploy, known, replace(choices(), weights=Choice(weights, "test")))
    assert found is not None
    return found


@pytest.mark.parametrize("weights", ["int4-gptq", "int4-awq"])
def test_calibrated_weights_are_made_of_the_text_by_its_content(weights: str) -> None:
    whole = made(weights, calibration=DATA)
    assert whole.calibration == Text("./c.jsonl", "sha256:aa", 64, 512)
    for change in ({"samples": 65}, {"tokens": 511}):
        assert made(weights, calibration=DATA | change).key != whole.key
    assert made(weights, {"./c.jsonl": "sha256:cc"}, calibration=DATA).key != whole.key
    moved = made(weights, {"./d.jsonl": "sha256:aa"}, calibration=DATA | {"data": "./d.jsonl"})
    assert moved.key == whole.key, "the same text elsewhere makes the same weights"


@pytest.mark.parametrize("weights", ["fp8", "int8", "int8-weight-only", "int4-rtn", "none"])
def test_weights_that_need_no_data_keep_their_key(weights: str) -> None:
    plain = made(weights)
    assert made(weights, calibration=DATA) == plain and plain.calibration is None
    measured = made(weights, calibration=DATA, quality={"max_perplexity_increase": "3%"})
    assert measured.key == plain.key


def test_smoothquant_makes_other_int8_weights_and_no_others() -> None:
    smooth = made("int8", calibration=DATA | {"smoothquant": 0.8})
    assert smooth.smoothquant == 0.8 and smooth.calibration is not None
    assert smooth.key not in {made("int8").key, made("int8", calibration=DATA | {"smoothquant": 0.5}).key}
    assert made("fp8", calibration=DATA | {"smoothquant": 0.8}) == made("fp8")
    assert calibration.method("int8", 0.8) == "smoothquant" and calibration.method("int8", 0.0) is None


def test_quality_is_measured_on_its_own_text_else_on_that_of_calibration() -> None:
    limits = {"max_mean_kl": 0.1, "samples": 16, "tokens": 128}
    own = made("fp8", calibration=DATA, quality=limits | {"data": "./q.jsonl"}).quality
    assert own is not None and own.text == Text("./q.jsonl", "sha256:bb", 16, 128) and own.max_mean_kl == 0.1
    other = made("fp8", calibration=DATA, quality=limits).quality
    assert other is not None and other.text == Text("./c.jsonl", "sha256:aa", 16, 128)
    assert made("none", calibration=DATA, quality=limits).quality is None, "nothing is lost where nothing is rounded"


def told(**quantization: Any) -> list[tuple[str, int]]:
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in {"weights": "fp8", **quantization}.items())
    first = QWEN_ON_4090.count("\n") + 2
    deploy = deploy_of(QWEN_ON_4090 + "quantization:\n" + lines)
    return [(d.code, d.at.line - first if d.at else -1) for d in calibration.check(deploy)]


def test_quality_without_a_text_is_told_on_its_line() -> None:
    assert told(quality={"max_mean_kl": 0.1}) == [("DC263", 1)]
    assert told(calibration=DATA, quality={}) == []
    assert told(quality={"data": "./q.jsonl"}) == told() == []
