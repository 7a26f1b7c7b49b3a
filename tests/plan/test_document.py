"""The plan document: every key of the contract, figures never bare, JSON that anyone can read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from golden import assert_golden
from handmade import QWEN_ON_4090, choices, deploy_of, facts, figure, prediction

from deployc.diagnostics import Report, warning
from deployc.emit import compile_bundle
from deployc.plan.document import document, partial_document
from deployc.plan.figures import figure as figure_json
from deployc.plan.figures import sla_line
from deployc.plan.make import make
from deployc.plan.steps import steps, switch
from deployc.types.figure import Figure, exact
from deployc.types.plan import Observed
from deployc.types.prediction import SlaLine
from deployc.views.json_text import json_text

CONTRACT = (
    "format_version", "name", "digest", "inputs", "variables", "model", "engine", "prediction", "quality", "sla",
    "observed", "switch", "steps", "accepted", "diagnostics",
)  # fmt: skip
UNSEEN = Observed(None, None, complete=False)


def whole() -> dict[str, Any]:
    """The document of the usual deployment, its target not looked at."""
    deploy = deploy_of(QWEN_ON_4090 + "accept: [{code: DC402, reason: a burst is fine}]\n")
    bundle, report = compile_bundle(deploy, facts(), choices(), prediction())
    assert bundle is not None
    report.add(
        warning("DC402", "may miss the SLA", "900 ms, the limit is 800 ms", "accept it", deploy.at("sla.ttft_p95"))
    )
    taken = steps(deploy, bundle, UNSEEN, "0.32.0")
    speed = prediction().speed
    return document(
        deploy=deploy,
        inputs={"deploy.yaml": "sha256:" + "a" * 64},
        variables={"HOME": "sha256:" + "b" * 64},
        facts=facts(),
        choices=choices(),
        prediction=prediction(),
        bundle=bundle,
        sla=[
            SlaLine("ttft_p95", exact(0.8, "s"), speed.ttft_p95, "tight", "deploy.yaml:15:13"),
            SlaLine("tpot_p95", exact(0.04, "s"), speed.tpot_p95, "meets", "deploy.yaml:16:13"),
        ],
        observed=UNSEEN,
        switch=switch(taken, UNSEEN, prediction(), 30),
        steps=taken,
        report=report,
    )


def test_golden_document() -> None:
    assert_golden(Path(__file__).parent / "expect" / "plan.json", json_text(whole()) + "\n")


def test_every_key_of_the_contract_is_there_in_its_order() -> None:
    made = whole()
    assert [key for key in made if key in CONTRACT] == list(CONTRACT)
    assert set(made["prediction"]["memory"]) == {
        "total", "budget", "weights", "activations", "cuda_graphs", "non_torch", "adapters", "kv_cache",
    }  # fmt: skip
    assert set(made["engine"]["args"]) == set(made["engine"]["because"])
    assert made["engine"]["args"]["max-num-seqs"] == 32
    assert made["engine"]["args"]["gpu-memory-utilization"] == 0.92
    assert made["engine"]["args"]["enable-prefix-caching"] is True
    assert made["accepted"] == [{"code": "DC402", "reason": "a burst is fine", "at": "deploy.yaml:23:10"}]
    assert made["observed"] == {"digest": None, "at": None, "complete": False}


def bare(value: Any, path: str = "") -> list[str]:
    """Places of numbers that stand outside a figure."""
    if isinstance(value, dict):
        if set(value) == {"value", "low", "high", "basis"}:
            return []
        return [place for key, inner in value.items() for place in bare(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [place for inner in value for place in bare(inner, path)]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_no_predicted_number_is_bare() -> None:
    made = whole()
    assert bare(made["prediction"]) == []
    assert bare(made["sla"]) == [".limit", ".limit"], "the user's own limits"


def test_what_has_no_bound_is_null() -> None:
    assert figure_json(Figure(math.inf, 1.0, math.inf, "s", "modelled")) == {
        "value": None, "low": 1.0, "high": None, "basis": "modelled",
    }  # fmt: skip
    line = sla_line(
        SlaLine("e2e_p95", exact(1, "s"), Figure(9, 9, math.inf, "s", "modelled"), "misses", "deploy.yaml:1:1")
    )
    assert json.loads(json_text(line))["predicted"]["high"] is None


def test_bytes_are_whole_and_noise_is_cut() -> None:
    assert figure_json(figure(1e9 / 3, "B"))["value"] == 333333333
    assert figure_json(figure(0.1 + 0.2, "s"))["value"] == 0.3


def test_a_document_of_nothing_but_findings() -> None:
    report = Report([warning("DC402", "may miss the SLA")])
    assert partial_document("x", report) == {
        "format_version": "1.0",
        "name": "x",
        "diagnostics": [
            {"code": "DC402", "severity": "warning", "summary": "may miss the SLA", "detail": "", "fix": "", "at": None}
        ],
    }


@dataclass
class Analysis:
    """As far as a stage came."""

    report: Report = field(default_factory=Report)
    document: Any = None
    deploy: Any = None
    facts: Any = None
    choices: Any = None
    prediction: Any = None
    bundle: Any = None
    explanation: Any = None
    growth: Any = None


def test_a_plan_as_far_as_the_analysis_came() -> None:
    plan = make(Analysis(), UNSEEN)
    assert [key for key in plan.document if key in CONTRACT] == list(CONTRACT)
    assert plan.document["prediction"] is None
    assert (plan.steps, plan.changes) == ((), False)


def test_a_whole_plan_and_whether_it_changes_anything() -> None:
    deploy = deploy_of(QWEN_ON_4090)
    bundle, report = compile_bundle(deploy, facts(), choices(), prediction())
    assert bundle is not None
    analysis = Analysis(report, None, deploy, facts(), choices(), prediction(), bundle)
    plan = make(analysis, UNSEEN)
    assert plan.changes
    assert [line["name"] for line in plan.document["sla"]] == ["ttft_p95", "tpot_p95"]
    seen = Observed(bundle.digest, "2030-01-01T00:00:00Z", complete=True, healthy=True, artifact=True)
    assert not make(analysis, seen).changes
    assert make(analysis, replace(seen, healthy=False)).changes


def test_every_key_of_the_explanation_is_documented() -> None:
    root = Path(__file__).resolve().parents[2]
    planned = json.loads((root / "tests" / "cases" / "states" / "expect" / "plan.json").read_text())
    reference = (root / "docs" / "reference.md").read_text()
    answers = planned["prediction"]["explain"]
    assert not [key for key in answers if f"`{key}`" not in reference]
    assert not [key for key in answers["longest_context"] if key not in reference]
