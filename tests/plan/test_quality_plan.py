"""From what the store knows of an artifact to a plan's findings; nothing of it offline."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deployc import pipeline
from deployc.pipeline import Analysis
from deployc.types.bundle import Measurement, Text
from deployc.types.figure import Figure
from deployc.types.plan import Observed
from deployc.types.quality import METHOD, Quality

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "examples"))
from make_locks import frozen  # noqa: E402

TEXT = Text("calib.jsonl", "sha256:" + "a" * 64, 32, 512)
HALF = Figure(0.5, 0.4, 0.6, "", "measured")
QUALITY = Quality(
    method=METHOD, text=TEXT, lines=32, tokens=4012, perplexity_reference=HALF, perplexity_artifact=HALF,
    perplexity_increase=HALF, mean_kl=HALF, top1_agreement=HALF, valid_json=None, answers=(), worst_layers=(),
    not_covered=(), device="cpu", seconds=1.0,
)  # fmt: skip


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    """A file that quantizes to int8, with a limit on a text."""
    shutil.copy(ROOT / "tests/cases/cpu-int8/deploy.yaml", tmp_path)
    path = tmp_path / "deploy.yaml"
    pipeline.lock_path(path).write_text(frozen(path))
    made = pipeline.compile(path, offline=True)
    assert made.bundle is not None and made.bundle.recipe is not None
    recipe = replace(made.bundle.recipe, quality=Measurement(TEXT, max_mean_kl=0.1))
    made.bundle = replace(made.bundle, recipe=recipe)
    return made


def looked(_: Analysis) -> Observed:
    return Observed(None, "2026-01-01T00:00:00+00:00", complete=True, artifact=True, quality=QUALITY)


def test_a_broken_limit_is_an_error_of_the_plan(analysis: Analysis) -> None:
    assert analysis.exit_code == 0
    made = pipeline.plan_of(analysis, looked)
    assert [d["code"] for d in made.document["diagnostics"] if d["severity"] == "error"] == ["DC267"]
    assert made.document["quality"]["mean_kl"]["value"] == 0.5
    assert analysis.exit_code == 3


def test_without_a_look_nothing_is_known(analysis: Analysis) -> None:
    made = pipeline.plan_of(analysis)
    assert made.document["quality"] is None
    assert "DC267" not in [d["code"] for d in made.document["diagnostics"]]


def test_offline_does_not_look(analysis: Analysis) -> None:
    def fail(_: Analysis) -> Observed:
        raise AssertionError("it looked")

    assert pipeline.plan(analysis.path, offline=True, observe=fail).document["quality"] is None
