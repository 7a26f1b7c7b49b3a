"""READ -> SHAPE -> RESOLVE -> PREDICT, DECIDE, JUDGE -> COMPILE -> PLAN, strung together once.

In: the path of a deploy.yaml. Out: an `Analysis` that holds what every stage made, as far as it came, and one report.
Commands and the Python API both go through here, so there is one way from a file to a plan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployc.diagnostics import ExitCode, Report
from deployc.types.plan import Observed, Plan

if TYPE_CHECKING:
    from deployc.measure.doctor.judge import Diagnosis
    from deployc.measure.doctor.log.judge import Told
    from deployc.source.document import Document
    from deployc.spec.deploy import Deploy
    from deployc.types.bundle import Bundle
    from deployc.types.choices import Choices
    from deployc.types.explanation import Explanation
    from deployc.types.facts import Facts
    from deployc.types.prediction import Growth, Prediction

Observe = Callable[["Analysis"], Observed]
PREDICTED = ("DC3", "DC4")
"""Codes that rest on a prediction: a file whose only errors are these does not fit, rather than being wrong."""


@dataclass(slots=True)
class Analysis:
    """What each stage made of one file; None from the first stage that could not go on."""

    path: Path
    report: Report = field(default_factory=Report)
    document: Document | None = None
    deploy: Deploy | None = None
    facts: Facts | None = None
    choices: Choices | None = None
    prediction: Prediction | None = None
    explanation: Explanation | None = None  # what people ask about memory: made for a plan alone
    growth: Growth | None = None  # the cheapest change that gives more: the same
    bundle: Bundle | None = None

    @property
    def exit_code(self) -> int:
        """3 where the file is wrong, 4 where it only does not fit or misses its SLA, else 0."""
        errors = self.report.errors
        if any(not d.code.startswith(PREDICTED) for d in errors):
            return ExitCode.WRONG_FILE
        return ExitCode.DOES_NOT_FIT if errors else ExitCode.OK


def shape(path: Path | str, env: Mapping[str, str] | None = None) -> Analysis:
    """READ and SHAPE: what needs no facts of model, card or engine."""
    from deployc.source import load
    from deployc.spec import shape as to_deploy

    analysis = Analysis(Path(path))
    analysis.document, report = load(analysis.path, os.environ if env is None else env)
    analysis.report.extend(report)
    if analysis.document is not None:
        unread = {d.at for d in analysis.report.errors}
        analysis.deploy, report = to_deploy(analysis.document)
        analysis.report.extend(d for d in report if d.at not in unread)  # a value that could not be read has no type
    return analysis


def resolved(
    path: Path | str,
    *,
    offline: bool = False,
    env: Mapping[str, str] | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Analysis:
    """READ, SHAPE and RESOLVE. `offline` reads only the file, its lockfile and shipped data.

    `assume` maps dotted keys of the model's config.json to values that it is read with, as `--assume` does.
    """
    from deployc.build.text.named import named_texts
    from deployc.choose.served import as_served
    from deployc.facts import resolve

    env = os.environ if env is None else env
    analysis = shape(path, env)
    deploy = analysis.deploy
    if deploy is None or analysis.report.errors:
        return analysis
    analysis.facts, report = resolve(
        deploy, lock_path=lock_path(analysis.path), offline=offline, env=env, assume=assume
    )
    analysis.report.extend(report)
    if analysis.facts is not None:
        texts, report = named_texts(deploy)
        analysis.report.extend(report)
        analysis.facts = as_served(deploy, replace(_with_tool_data(analysis.facts), texts=texts))
    return analysis


def _with_tool_data(facts: Facts) -> Facts:
    """Facts beside which stands what the tool itself knows: constants, cards, lore."""
    from deployc.facts.calibration import calibration
    from deployc.facts.gpu_profile import cards
    from deployc.facts.lore import lore

    version = facts.engine.version
    return replace(facts, calibration=calibration(version), known_cards=cards(), lore=lore(version))


def diagnose(
    path: Path | str, *, like: Path | str | None = None, offline: bool = False, env: Mapping[str, str] | None = None
) -> tuple[Diagnosis | None, Report]:
    """What is wrong with a server by its description. None where that, or its model, cannot be understood.

    The model's facts come from the lockfile of `like`, a deploy.yaml that also says what the description does not;
    else from the description's own lockfile, the folder or the hub that it names.
    """
    from deployc.facts.engine import versions
    from deployc.measure.doctor.description import described, from_deploy
    from deployc.measure.doctor.effects import effects
    from deployc.measure.doctor.expected import expected
    from deployc.measure.doctor.judge import judge
    from deployc.measure.doctor.known import as_deploy
    from deployc.measure.doctor.known import known as known_of
    from deployc.measure.doctor.patient import Patient
    from deployc.measure.doctor.sums import SUMS

    env, path = os.environ if env is None else env, Path(path)
    beside = resolved(like, offline=offline, env=env) if like is not None else None
    if beside is not None and (beside.facts is None or beside.report.errors):
        return None, beside.report
    said, report = described(path, env, from_deploy(beside.deploy) if beside and beside.deploy else {})
    if said is None:
        return None, report
    deploy, found = as_deploy(said, said.values.version or versions()[-1], str(path.parent))
    report.extend(found)
    if deploy is None:
        return None, report
    model = None
    if beside is not None and beside.deploy is not None and beside.facts is not None:
        model = beside.facts.unmerged if beside.deploy.model.source == said.values.model else None
    facts, found = known_of(said, deploy, lock=lock_path(path), offline=offline, env=env, model=model)
    report.extend(found)
    if facts is None:
        report.extend(d for add in SUMS for d in add(said))  # what is wrong without any facts
        return None, report
    diagnosis = judge(Patient(said, expected(said.values, deploy, _with_tool_data(facts))), effects())
    report.extend(diagnosis.diagnostics)
    return diagnosis, report


def diagnose_log(
    path: Path | str, *, like: Path | str | None = None, offline: bool = False, env: Mapping[str, str] | None = None
) -> tuple[Told | None, Report]:
    """What the log of an engine says, `-` being the standard input, beside the plan of the deploy.yaml `like`.

    None where the log cannot be read. Where nothing can be predicted of that file, the report says why.
    """
    from deployc.data import pages
    from deployc.facts.engine import versions
    from deployc.facts.lore import lore
    from deployc.measure.doctor.log.judge import judge
    from deployc.measure.doctor.log.reading import read
    from deployc.measure.doctor.log.table import gone, table
    from deployc.measure.doctor.log.window import opened
    from deployc.rules.case import Case
    from deployc.views.pages import read as page

    window, report = opened(Path(path))
    if window is None:
        return None, report
    case, planned = None, frozenset[str]()
    if like is not None:
        beside = compile(like, offline=offline, env=env)
        planned = frozenset(found.code for found in beside.report)
        if beside.deploy and beside.facts and beside.choices and beside.prediction:
            case = Case(beside.deploy, beside.facts, beside.choices, beside.prediction)
        else:
            report.extend(beside.report.errors)
    known = table()
    codes = {"DC502", *(row.code for row in known.failures)}
    told = judge(
        read(window, known),
        {code: page((pages() / f"{code}.md").read_text(encoding="utf-8")) for code in codes},
        {**gone(), **lore(versions()[-1]).gone},
        case,
        planned,
    )
    report.extend(told.diagnostics)
    return told, report


def compile(
    path: Path | str,
    *,
    offline: bool = False,
    env: Mapping[str, str] | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Analysis:
    """Everything up to the bundle. `offline` and `assume` as in `resolved`."""
    from deployc.choose import decide
    from deployc.emit import compile_bundle
    from deployc.rules import accept, judge

    analysis = resolved(path, offline=offline, env=env, assume=assume)
    deploy = analysis.deploy
    if deploy is None or analysis.facts is None:
        return analysis
    analysis.choices, analysis.prediction, report = decide(deploy, analysis.facts)
    analysis.report.extend(report)
    if analysis.choices is None or analysis.prediction is None:
        return analysis
    analysis.report.extend(judge(deploy, analysis.facts, analysis.choices, analysis.prediction))
    analysis.bundle, report = compile_bundle(deploy, analysis.facts, analysis.choices, analysis.prediction)
    analysis.report.extend(report)
    analysis.report = accept(deploy, analysis.report)
    return analysis


def lock_path(path: Path) -> Path:
    """The lockfile of a deploy.yaml: `deploy.lock` beside `deploy.yaml`, `x.lock` beside `x.yaml`."""
    return path.with_suffix(".lock")


def plan(
    path: Path | str,
    *,
    offline: bool = False,
    observe: Observe | None = None,
    env: Mapping[str, str] | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a file. Without `observe` the target is not looked at and steps say so; `offline` implies that."""
    return plan_of(compile(path, offline=offline, env=env, assume=assume), None if offline else observe)


def plan_of(analysis: Analysis, observe: Observe | None = None) -> Plan:
    """The plan of an analysis, as far as that came."""
    from deployc.cost.explain import explain
    from deployc.plan import make
    from deployc.rules import quality
    from deployc.rules.case import Case
    from deployc.rules.changes.growth import growth

    deploy, facts, choices, prediction = analysis.deploy, analysis.facts, analysis.choices, analysis.prediction
    if deploy is not None and facts is not None and choices is not None and prediction is not None:
        analysis.explanation = explain(deploy, facts, choices, prediction)
        analysis.growth = growth(Case(deploy, facts, choices, prediction))
    observed = observe(analysis) if observe and analysis.bundle else Observed(None, None, complete=False)
    if deploy is not None and analysis.bundle is not None and analysis.bundle.recipe is not None:
        analysis.report.extend(quality.known(analysis.bundle.recipe.quality, observed.quality, deploy.at))
    return make(analysis, observed)
