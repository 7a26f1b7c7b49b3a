"""The plan of one analysed file and what was seen of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from deployc.diagnostics import Report
from deployc.emit.timing import timing
from deployc.plan.document import document
from deployc.plan.steps import steps, switch
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle
from deployc.types.choices import Choices
from deployc.types.explanation import Explanation
from deployc.types.facts import Facts
from deployc.types.plan import Observed, Plan, Step, Switch
from deployc.types.prediction import Growth, Prediction, SlaLine


class Read(Protocol):
    """What was read of deploy.yaml: every file's and variable's hash."""

    @property
    def inputs(self) -> Mapping[str, str]: ...
    @property
    def variables(self) -> Mapping[str, str]: ...


class Analysed(Protocol):
    """What the stages before made of a file, None from the first that could not go on (`pipeline.Analysis`)."""

    @property
    def report(self) -> Report: ...
    @property
    def document(self) -> Read | None: ...
    @property
    def deploy(self) -> Deploy | None: ...
    @property
    def facts(self) -> Facts | None: ...
    @property
    def choices(self) -> Choices | None: ...
    @property
    def prediction(self) -> Prediction | None: ...
    @property
    def explanation(self) -> Explanation | None: ...
    @property
    def growth(self) -> Growth | None: ...
    @property
    def bundle(self) -> Bundle | None: ...


def make(analysis: Analysed, observed: Observed) -> Plan:
    """The plan as far as the analysis came. `changes` is true unless the target is known to be as written."""
    deploy, facts, prediction, bundle = analysis.deploy, analysis.facts, analysis.prediction, analysis.bundle
    taken: tuple[Step, ...] = ()
    over: Switch | None = None
    if deploy and facts and prediction and bundle:
        taken = steps(deploy, bundle, observed, facts.engine.version, facts.mended)
        over = switch(taken, observed, prediction, timing(deploy, prediction).drain)
    made = document(
        deploy=deploy,
        inputs={**(analysis.document.inputs if analysis.document else {}), **(facts.texts if facts else {})},
        variables=analysis.document.variables if analysis.document else {},
        facts=facts,
        choices=analysis.choices,
        prediction=prediction,
        bundle=bundle,
        sla=_sla(deploy, prediction) if deploy and prediction else (),
        observed=observed,
        switch=over,
        steps=taken,
        report=analysis.report,
        explained=analysis.explanation,
        grown=analysis.growth,
    )
    return Plan(made, taken, changes=any(step.action != "keep" for step in taken))


def _sla(deploy: Deploy, prediction: Prediction) -> tuple[SlaLine, ...]:
    from deployc.rules import sla

    return sla.lines(deploy, prediction)
