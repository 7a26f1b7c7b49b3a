"""The gate: which limits measured figures break, which they only may, and what is said to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from handmade import QWEN_ON_4090, deploy_of

from deployc.diagnostics import Severity
from deployc.rules.quality import gate, known
from deployc.types.bundle import Measurement, Text
from deployc.types.figure import Figure
from deployc.types.quality import METHOD, Layer, Quality, ValidJson

TEXT = Text("calib.jsonl", "sha256:" + "a" * 64, 32, 512)


def figure(value: float, low: float, high: float) -> Figure:
    return Figure(value, low, high, "", "measured")


QUALITY = Quality(
    method=METHOD,
    text=TEXT,
    lines=32,
    tokens=4012,
    perplexity_reference=figure(9.0, 7.0, 12.0),
    perplexity_artifact=figure(9.2, 7.1, 12.3),
    perplexity_increase=figure(0.0224, 0.018, 0.027),
    mean_kl=figure(0.0123, 0.011, 0.0136),
    top1_agreement=figure(0.951, 0.943, 0.958),
    valid_json=ValidJson(40, figure(1.0, 0.91, 1.0), figure(0.95, 0.835, 0.986)),
    answers=(),
    worst_layers=(Layer(("model.layers.0.mlp.down_proj",), 0.123),),
    not_covered=(),
    device="cpu",
    seconds=12.5,
)

CASES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({}, []),
    ({"max_perplexity_increase": 0.03, "max_mean_kl": 0.02, "min_top1_agreement": 0.9, "min_valid_json": 0.8}, []),
    ({"max_perplexity_increase": 0.025}, [("DC268", "2.2 % (1.8 % to 2.7 %), the limit 2.5 %")]),
    ({"max_perplexity_increase": 0.02}, [("DC267", "The increase of perplexity is 2.2 %")]),
    ({"max_perplexity_increase": 0.0224}, [("DC268", "the limit 2.2 %")]),  # at the limit is kept
    ({"max_mean_kl": 0.01}, [("DC267", "0.0123 nats (0.011 nats to 0.0136 nats), the limit 0.01 nats")]),
    ({"max_mean_kl": 0.013}, [("DC268", "The mean KL divergence")]),
    ({"min_top1_agreement": 0.96}, [("DC267", "95.1 % (94.3 % to 95.8 %), the limit 96.0 %")]),
    ({"min_top1_agreement": 0.95}, [("DC268", "The agreement of the likeliest token")]),
    ({"min_valid_json": 0.98}, [("DC267", "the limit 98.0 %; the 16-bit model's is 100.0 %")]),
    ({"min_valid_json": 0.9}, [("DC268", "The share of valid JSON")]),
    ({"max_mean_kl": 0.01, "min_top1_agreement": 0.99}, [("DC267", "KL"), ("DC267", "likeliest")]),
]


@pytest.mark.parametrize(("limits", "expected"), CASES)
def test_limits(limits: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = gate(QUALITY, Measurement(TEXT, **limits))
    assert [diagnostic.code for diagnostic in found] == [code for code, _ in expected]
    for diagnostic, (code, said) in zip(found, expected, strict=True):
        assert said in diagnostic.detail and diagnostic.fix
        assert diagnostic.severity is (Severity.ERROR if code == "DC267" else Severity.WARNING)


def test_the_fix_names_the_worst_layers() -> None:
    broken = Measurement(TEXT, max_mean_kl=0.001)
    assert "ignore: model.layers.0.mlp.down_proj: 12.3 %" in gate(QUALITY, broken)[0].fix
    assert "ignore" not in gate(replace(QUALITY, worst_layers=()), broken)[0].fix


def test_a_limit_on_json_without_a_prompt_for_it_is_an_error() -> None:
    (found,) = gate(replace(QUALITY, valid_json=None), Measurement(TEXT, min_valid_json=0.9))
    assert (found.code, found.severity) == ("DC265", Severity.ERROR)


def test_a_finding_stands_at_its_limit() -> None:
    deploy = deploy_of(
        QWEN_ON_4090 + "quantization: {weights: int8, quality: {data: calib.jsonl, max_mean_kl: 0.001}}\n"
    )
    (found,) = gate(QUALITY, Measurement(TEXT, max_mean_kl=0.001), deploy.at)
    assert found.at is not None and "max_mean_kl: 0.001" in found.at.excerpt
    assert found.at.column == found.at.excerpt.index("0.001") + 1


OTHER = [
    replace(TEXT, digest="sha256:" + "b" * 64), replace(TEXT, samples=64), replace(TEXT, tokens=1024),
    replace(TEXT, digest=""),
]  # fmt: skip


@pytest.mark.parametrize("text", OTHER)
def test_figures_of_another_text_break_no_limit(text: Text) -> None:
    broken = Measurement(TEXT, max_mean_kl=0.001)
    assert [d.code for d in known(broken, QUALITY, lambda _: None)] == ["DC267"]
    assert known(replace(broken, text=text), QUALITY, lambda _: None) == []
    assert known(broken, replace(QUALITY, method=METHOD - 1), lambda _: None) == []
    assert known(None, QUALITY, lambda _: None) == [] == known(broken, None, lambda _: None)


def test_a_text_may_lie_elsewhere_and_is_the_same() -> None:
    assert QUALITY.is_of(replace(TEXT, path="data/calib.jsonl"))
