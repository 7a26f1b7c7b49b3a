"""The plan's block on quality: what stands there, when, and that figures are never bare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handmade import QWEN_ON_4090, choices, deploy_of, facts, prediction

from deployc.diagnostics import Report
from deployc.emit import compile_bundle
from deployc.plan.document import document
from deployc.types.bundle import Bundle, Measurement, Recipe, Text
from deployc.types.figure import Figure
from deployc.types.plan import Observed
from deployc.types.quality import METHOD, Answer, Layer, Quality, ValidJson
from deployc.views import quality as view
from deployc.views import text

TEXT = Text("calib.jsonl", "sha256:" + "a" * 64, 32, 512)


def figure(value: float, low: float, high: float) -> Figure:
    return Figure(value, low, high, "", "measured")


QUALITY = Quality(
    method=METHOD,
    text=TEXT,
    lines=32,
    tokens=4012,
    perplexity_reference=figure(9.0, 7.0, 12.0),
    perplexity_artifact=figure(9.1, 7.1, 12.1),
    perplexity_increase=figure(0.0124, 0.009, 0.0157),
    mean_kl=figure(0.0101, 0.0089, 0.0113),
    top1_agreement=figure(0.981, 0.976, 0.985),
    valid_json=None,
    answers=(Answer("the secret plan", "yes", "no"),),
    worst_layers=(Layer(("model.layers.0.mlp.down_proj",), 0.123),),
    not_covered=(),
    device="cpu",
    seconds=12.5,
)


def planned(known: Quality | None, named: Text | None = TEXT) -> dict[str, Any]:
    """A plan whose artifact was measured, its file naming a text to measure on."""
    deploy = deploy_of(QWEN_ON_4090)
    bundle, report = compile_bundle(deploy, facts(), choices(), prediction())
    assert bundle is not None and bundle.recipe is not None
    recipe: Recipe = replace(bundle.recipe, quality=Measurement(named) if named else None)
    whole: Bundle = replace(bundle, recipe=recipe)
    return document(
        deploy=deploy, inputs={}, variables={}, facts=facts(), choices=choices(), prediction=prediction(),
        bundle=whole, sla=[], observed=Observed(None, None, complete=True, quality=known), switch=None, steps=[],
        report=report,
    )  # fmt: skip


def test_nothing_is_said_of_what_was_not_measured() -> None:
    made = planned(None)
    assert made["quality"] is None
    assert view.lines(made, color=False, width=80) == []


def test_the_document_holds_every_figure_with_its_band_and_no_text_of_the_user() -> None:
    made = planned(QUALITY)["quality"]
    assert list(made) == [
        "text", "current", "lines", "tokens", "perplexity_reference", "perplexity_artifact", "perplexity_increase",
        "mean_kl", "top1_agreement", "valid_json", "worst_layers", "not_covered", "device",
    ]  # fmt: skip
    assert made["mean_kl"] == {"value": 0.0101, "low": 0.0089, "high": 0.0113, "basis": "measured"}
    assert made["text"] == {"path": "calib.jsonl", "digest": TEXT.digest, "samples": 32, "tokens": 512}
    assert made["current"] is True and "secret" not in str(made)


def test_the_block() -> None:
    assert view.lines(planned(QUALITY), color=False, width=100) == [
        "QUALITY, measured on 32 lines, 4,012 tokens of calib.jsonl",
        "  Against the 16-bit model: perplexity +1.2 % (+0.9 – +1.6 %), KL 0.0101 (0.0089 – 0.0113) nats a",
        "  token, top-1 98.1 % (97.6 – 98.5 %).",
    ]


def test_json_and_what_is_left_out_are_said() -> None:
    valid = ValidJson(40, figure(1.0, 0.91, 1.0), figure(0.95, 0.835, 0.986))
    known = replace(
        QUALITY, valid_json=valid, not_covered=("1 line was left out: its prompt fills all of 512 tokens.",)
    )
    found = "\n".join(view.lines(planned(known), color=False, width=120))
    assert "Valid JSON: 95.0 % (83.5 – 98.6 %) of 40 answers; the 16-bit model's 100.0 %." in found
    assert "1 line was left out" in found


def test_figures_of_another_text_are_said_to_be_that() -> None:
    for made in (planned(QUALITY, replace(TEXT, tokens=64)), planned(QUALITY, None)):
        assert made["quality"]["current"] is False
        assert "the next build measures on that" in "\n".join(view.lines(made, color=False, width=120))


def test_it_stands_in_the_plan() -> None:
    made = planned(QUALITY)
    shown = text.plan(made, Report([]), width=80)
    assert shown.index("SPEED") < shown.index("QUALITY") < shown.index("STEPS")
