"""The examples plan offline from the checkout, by lockfiles that are what the shipped profiles say now."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import pytest

from deployc import pipeline
from deployc.facts import lock
from deployc.facts.engine import engine

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted([*EXAMPLES.glob("qwen2.5-7b-*/deploy*.yaml"), EXAMPLES / "smollm2-cpu" / "deploy.yaml"])
ADAPTED = EXAMPLES / "qwen2.5-7b-lora-rtx4090" / "deploy.yaml"


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_an_example_plans_offline_without_errors(path: Path) -> None:
    analysis = pipeline.compile(path, offline=True, env={})
    assert [f"{d.code}: {d.detail}" for d in analysis.report.errors] == []
    assert analysis.bundle is not None
    assert analysis.facts is not None
    assert analysis.facts.locked


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_locked_engine_is_the_shipped_catalogue(path: Path) -> None:
    locked, _ = lock.read(pipeline.lock_path(path))
    deploy = pipeline.shape(path, {}).deploy
    assert locked is not None
    assert deploy is not None
    assert locked.engine == engine(deploy)[0], f"run `deployc lock -f {path}` or examples/make_locks.py again"


def test_the_hand_written_lockfiles_are_what_their_script_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    make_locks = importlib.import_module("make_locks")
    for name in make_locks.EXAMPLES:
        path = EXAMPLES / name
        assert pipeline.lock_path(path).read_text() == make_locks.frozen(path), "run examples/make_locks.py again"


def test_hand_written_facts_say_so() -> None:
    by_hand = [path for path in FILES if "qwen" in path.parent.name]
    assert len(by_hand) == 5
    for path in by_hand:
        model = json.loads(pipeline.lock_path(path).read_text())["model"]
        assert model["provenance"].startswith("written by hand")
        assert model["weights_basis"] == "architecture"


def test_a_lora_on_a_4090_fits_in_16_bits_and_meets_its_limits() -> None:
    plan = pipeline.plan(ADAPTED, offline=True, env=dict(os.environ)).document
    prediction = plan["prediction"]
    assert prediction["memory"]["weights"]["value"] == pytest.approx(14.2 * 2**30, rel=0.01)
    assert prediction["kv_cache_tokens"]["low"] > 100_000
    assert prediction["bound_by"] == "memory-bandwidth"
    assert {line["verdict"] for line in plan["sla"]} == {"meets"}
    assert {d["severity"] for d in plan["diagnostics"]} == {"note"}
