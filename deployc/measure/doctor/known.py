"""Facts of the model, the card and the engine that are described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deployc.diagnostics import Diagnostic, Report
from deployc.measure.doctor.description import Described
from deployc.measure.doctor.expected import deploy_of
from deployc.spec.deploy import Deploy
from deployc.spec.faults import Wrong, expected, fault
from deployc.types.facts import Facts, ModelFacts


def known(
    said: Described, deploy: Deploy, *, lock: Path, offline: bool, env: Mapping[str, str], model: ModelFacts | None
) -> tuple[Facts | None, Report]:
    """As RESOLVE finds them; `model` where its facts are there already. Findings stand where the description names
    what they are about."""
    from deployc.facts import resolve
    from deployc.facts.engine import engine
    from deployc.facts.gpu import devices

    if model is None:
        facts, report = resolve(deploy, lock_path=lock, offline=offline, env=env)
        return facts, _placed(said, report)
    cards, report = devices(deploy, env)
    version, found = engine(deploy)
    report.extend(found)
    if cards is None or version is None:
        return None, _placed(said, report)
    return Facts(model, (), cards, version, locked=True), _placed(said, report)


def as_deploy(said: Described, version: str, folder: str) -> tuple[Deploy | None, Report]:
    """What is described as a deploy.yaml; None where a flag has a value that it cannot have."""
    try:
        return deploy_of(said.values, version, folder=folder), Report()
    except ValidationError as wrong:
        return None, Report([_refused(said, problem) for problem in wrong.errors(include_url=False)])


def _refused(said: Described, problem: Any) -> Diagnostic:
    """The flag is named where it stands: a deploy.yaml has some of them as keys of its own."""
    name = {"gpu_memory_utilization": "gpu-memory-utilization", "max_context": "max-model-len"}.get(
        str(problem["loc"][-1]), str(problem["loc"][-1])
    )
    written = next((key for key in said.values.args if key.lstrip("-").replace("_", "-") == name), None)
    found = problem.get("ctx", {}).get("error")
    wrong = found if isinstance(found, Wrong) else expected("another value", problem["input"])
    at = said.at("args", written) if written is not None else said.at("args")
    return fault(wrong.kind, f"`{name}`: {wrong.detail}.", wrong.fix, at)


def _placed(said: Described, report: Report) -> Report:
    """By code: DC66x are about the card, DC55x about the engine, the rest about the model."""
    keys = {"DC66": "gpu", "DC55": "version"}
    fixes = {"DC193": "leave out --offline, name a local folder, or give a locked deploy.yaml of this model with -f"}
    return Report([replace(d, at=said.at(keys.get(d.code[:4], "model")), fix=fixes.get(d.code, d.fix)) for d in report])
