"""Sums to figures with bands, and manifests that keep them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from adapted import Small

from deployc.build import store as shelf
from deployc.build.quality import figures
from deployc.build.quality.measure import needed, quality, with_quality
from deployc.diagnostics import Stop
from deployc.facts.codec import decode, encode
from deployc.types.bundle import Measurement, Text
from deployc.types.manifest import Manifest

TEXT = Text("calib.jsonl", "sha256:" + "a" * 64, 32, 512)
FOUND = {
    "units": [[10, 20.0, 21.0, 0.5, 9], [30, 60.0, 61.0, 0.9, 29], [20, 38.0, 39.5, 0.6, 20]],
    "lines": 3,
    "tokens": 60,
    "valid_json": [4, 4, 3],
    "answers": [{"prompt": "a", "reference": "b", "artifact": "c"}],
    "squares": {
        "a.q_proj": [3.0, 100.0],
        "a.k_proj": [1.0, 60.0],
        "a.v_proj": [0.0, 240.0],
        "a.o_proj": [1.0, 25.0],
        "b.up_proj": [0.0, 9.0],
        "c.up_proj": [1.0, 1e6],
        "d.gate": [0.0, 0.0],
    },
    "not_covered": [],
    "device": "cpu",
    "seconds": 1.5,
}


def test_figures_by_hand() -> None:
    found = quality(TEXT, FOUND)
    assert found.perplexity_reference.value == pytest.approx(math.exp(118 / 60))
    assert found.perplexity_artifact.value == pytest.approx(math.exp(121.5 / 60))
    assert found.perplexity_increase.value == pytest.approx(math.exp(3.5 / 60) - 1)
    assert found.mean_kl.value == pytest.approx(2 / 60)
    assert found.top1_agreement.value == pytest.approx(58 / 60)
    # the mean's linearized error: residuals 1/6, -1/10, -1/15 of a mean of 2/60 with 10, 30 and 20 tokens
    error = math.sqrt(((1 / 6) ** 2 + (1 / 10) ** 2 + (1 / 15) ** 2) * 3 / 2) / 60
    assert found.mean_kl.high == pytest.approx(2 / 60 + figures.student(2) * error)
    assert found.valid_json is not None
    assert (found.valid_json.asked, found.valid_json.reference.value, found.valid_json.artifact.value) == (4, 1.0, 0.75)
    assert 0 < found.valid_json.reference.low < 1 == found.valid_json.reference.high


@pytest.mark.parametrize(("freedom", "table"), [(7, 2.3646), (12, 2.1788), (31, 2.0395), (127, 1.9788)])
def test_quantiles_of_student_are_those_of_the_tables(freedom: int, table: float) -> None:
    assert figures.student(freedom) == pytest.approx(table, rel=0.01)


@pytest.mark.parametrize(
    ("good", "asked", "low", "high"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (81, 263, 0.2553, 0.3662), (1, 1, 0.2065, 1.0)],
)
def test_wilson_s_interval(good: int, asked: int, low: float, high: float) -> None:
    """The third is an example of Newcombe's, Statistics in Medicine 17 (1998), 857-872."""
    assert figures.wilson(good, asked) == pytest.approx((low, high), abs=1e-4)


def test_a_band_holds_its_value_whatever_is_counted() -> None:
    for good in range(0, 40):
        found = figures.share(good, 39 if good < 39 else good)
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_the_worst_layers_are_those_that_an_engine_runs_as_one() -> None:
    found = quality(TEXT, FOUND).worst_layers
    assert [layer.modules for layer in found] == [("a.o_proj",), ("a.k_proj", "a.q_proj", "a.v_proj"), ("c.up_proj",)]
    assert [layer.error for layer in found] == pytest.approx([0.2, 0.1, 0.001])


def test_one_token_is_too_little() -> None:
    with pytest.raises(Stop) as caught:
        quality(TEXT, FOUND | {"units": [[1, 2.0, 2.0, 0.0, 1]]})
    assert [d.code for d in caught.value.report] == ["DC265"]


@pytest.mark.build
def test_a_manifest_keeps_its_quality_and_older_ones_have_none(small: Small) -> None:
    made = small.build()
    store, manifest = made.path.parent, made.manifest
    assert manifest.quality is None and needed(manifest, Measurement(TEXT))
    known = with_quality(store, manifest, quality(TEXT, FOUND))
    again = shelf.artifact_for(store, manifest.key)
    assert again is not None and again.manifest == known and again.manifest.quality == quality(TEXT, FOUND)
    assert shelf.verify(store, manifest.key) == []
    assert (made.path / shelf.MANIFEST).stat().st_mode & 0o777 == shelf.READABLE
    assert not needed(known, Measurement(TEXT, max_mean_kl=0.5))
    for other in (replace(TEXT, tokens=64), replace(TEXT, samples=64), replace(TEXT, digest="sha256:b")):
        assert needed(known, Measurement(other))
    assert decode(Manifest, json.loads(json.dumps(encode(manifest)))) == manifest
    assert "quality" not in encode(manifest)
