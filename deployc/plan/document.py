"""The plan document: its keys in the order of docs/reference.md, null where a stage did not come that far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployc.diagnostics import Diagnostic, Report
from deployc.plan import figures, quality
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle
from deployc.types.choices import Choices
from deployc.types.explanation import Explanation
from deployc.types.facts import EngineFacts, Facts
from deployc.types.plan import Observed, Step, Switch
from deployc.types.prediction import Growth, Prediction, SlaLine

FORMAT_VERSION = "1.0"


def partial_document(name: str | None, report: Report) -> dict[str, Any]:
    """The least that a command prints with `--json`: what was found."""
    return {"format_version": FORMAT_VERSION, "name": name, "diagnostics": diagnostics(report)}


def document(
    *,
    deploy: Deploy | None,
    inputs: Mapping[str, str],
    variables: Mapping[str, str],
    facts: Facts | None,
    choices: Choices | None,
    prediction: Prediction | None,
    bundle: Bundle | None,
    sla: Sequence[SlaLine],
    observed: Observed,
    switch: Switch | None,
    steps: Sequence[Step],
    report: Report,
    explained: Explanation | None = None,
    grown: Growth | None = None,
) -> dict[str, Any]:
    """All of it. `hardware`, `workload` and a few keys of `prediction` are there so that views need nothing else."""
    return {
        "format_version": FORMAT_VERSION,
        "name": deploy.name if deploy else None,
        "digest": bundle.digest if bundle else None,
        "inputs": dict(inputs),
        "variables": dict(variables),
        "model": _model(facts, choices) if facts and choices else None,
        "hardware": _hardware(facts, choices) if facts and choices else None,
        "workload": deploy.workload.model_dump(exclude_none=True) if deploy else None,
        "engine": _engine(facts.engine, bundle) if facts else None,
        "prediction": _prediction(prediction, explained, grown, deploy, facts) if prediction else None,
        "quality": quality.quality(observed.quality, bundle) if observed.quality else None,
        "sla": [figures.sla_line(line) for line in sla],
        "observed": {"digest": observed.digest, "at": observed.at, "complete": observed.complete},
        "switch": _switch(switch) if switch else None,
        "steps": [_step(step) for step in steps],
        "accepted": _accepted(deploy, report) if deploy else [],
        "diagnostics": diagnostics(report),
    }


def diagnostics(report: Report) -> list[dict[str, Any]]:
    """Findings in the order of showing."""
    return [_diagnostic(found) for found in report.ordered()]


def _diagnostic(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": str(found.severity),
        "summary": found.summary,
        "detail": found.detail,
        "fix": found.fix,
        "at": str(found.at) if found.at else None,
    }


def _model(facts: Facts, choices: Choices) -> dict[str, Any]:
    model = facts.model
    return {
        "parameters": model.parameters,
        "layers": model.architecture.layers,
        "attention": model.architecture.attention,
        "dtype": choices.dtype.value,
        "weights": choices.weights.value,
        "source": model.source,
        "revision": model.revision,
        "provenance": model.provenance,
        "adapters": [{"name": a.name, "rank": a.rank, "mode": choices.adapter_mode.value} for a in facts.adapters],
    }


def _prediction(
    prediction: Prediction, explained: Explanation | None, grown: Growth | None, deploy: Deploy | None,
    facts: Facts | None,
) -> dict[str, Any]:  # fmt: skip
    price = deploy.hardware.price if deploy else None
    hourly = price * len(facts.devices) if price is not None and facts else None
    return figures.prediction(prediction, explained, grown, hourly)


def _hardware(facts: Facts, choices: Choices) -> dict[str, Any]:
    return {
        "gpus": [card.name for card in facts.devices],
        "tensor_parallel_size": choices.tensor_parallel_size.value,
        "replicas": choices.replicas.value,
    }


def _engine(engine: EngineFacts, bundle: Bundle | None) -> dict[str, Any]:
    flags = bundle.launches[0].flags if bundle else ()
    return {
        "name": engine.name,
        "version": engine.version,
        "args": {flag.name: _native(flag.name, flag.value, engine) for flag in flags},
        "because": {flag.name: flag.because for flag in flags},
    }


def _native(name: str, value: str | None, engine: EngineFacts) -> str | int | float | bool:
    """A flag's value as the catalogue types it: numbers as numbers, a bare switch as true."""
    if value is None:
        return True
    if value == "false":
        return False
    kind = engine.flags[name].type if name in engine.flags else "str"
    try:
        return int(value) if kind in ("int", "size") else float(value) if kind == "float" else value
    except ValueError:  # "16k", "auto"
        return value


def _switch(of: Switch) -> dict[str, Any]:
    return {"strategy": of.strategy, "gap_seconds": of.gap_seconds, "worst_case": of.worst_case}


def _step(of: Step) -> dict[str, Any]:
    return {
        "id": of.id,
        "action": of.action,
        "target": of.target,
        "cause": of.cause,
        "at": of.at,
        "needs": list(of.needs),
    }


def _accepted(deploy: Deploy, report: Report) -> list[dict[str, Any]]:
    """The entries of `accept` that met a finding."""
    found = {diagnostic.code for diagnostic in report}
    return [
        {"code": entry.code, "reason": entry.reason, "at": str(deploy.at(f"accept.{index}") or "")}
        for index, entry in enumerate(deploy.accept)
        if entry.code in found
    ]
