"""Every setting that the file writes, with it and without it: one prediction a candidate that is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc.cost import predict
from deployc.cost.other_cards import starts
from deployc.cost.speed_basis import speed_basis
from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, warning
from deployc.rules import flags, sla, start
from deployc.rules.advice.effect import Effect, effects
from deployc.rules.advice.table import SETTINGS, Setting
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.types.figure import weakest
from deployc.types.prediction import Prediction

RANK = {"meets": 0, "tight": 1, "misses": 2}


def settings(case: Case) -> Iterator[Diagnostic]:
    """A warning for each that costs more than it gives. What does not start has other troubles."""
    if case.on_cpu or not starts(case.facts, case.choices) or any(flags.coherent(case)):
        return
    case = _one_step_at_a_time(case)
    for setting in SETTINGS:
        yield from _judged(case, setting)


def _one_step_at_a_time(case: Case) -> Case:
    """DECIDE leaves this switch to the engine; here it is followed."""
    found = written_flag(case.deploy, case.facts, "async-scheduling")
    if found is None or found[0] is not False or not case.choices.async_scheduling.value:
        return case
    choices = with_value(case.choices, async_scheduling=False)
    return replace(case, choices=choices, prediction=predict(case.deploy, case.facts, choices))


def _judged(case: Case, setting: Setting) -> Iterator[Diagnostic]:
    without = setting.without(case)
    if without is None or not starts(case.facts, without.choices):
        return
    other = replace(case, choices=without.choices, prediction=predict(case.deploy, case.facts, without.choices))
    if any(start.graphs_outside_the_budget(other)):
        return  # then the setting is what a rule about memory advises
    found = effects(case.prediction, other.prediction, speed_basis(case.facts, case.choices).errors)
    basis = weakest(e.cost.basis for e in found)
    worse, better = _verdicts(case, other.prediction)
    if better or not (worse or _costs(found, case.prediction, other.prediction)):
        return
    yield warning(
        setting.code,
        setting.summary,
        f"{without.compared}: {_detail(found, worse, case.prediction, other.prediction)} ({basis}).{_favour(found)}",
        without.fix,
        case.at(setting.flag, setting.key),
        basis,
    )


def _verdicts(case: Case, other: Prediction) -> tuple[list[str], list[str]]:
    """Limits of the SLA that are judged worse with the setting than without it, and those judged better."""
    pairs = zip(sla.lines(case.deploy, case.prediction), sla.lines(case.deploy, other), strict=True)
    ranked = [(ours.name, RANK[ours.verdict], RANK[theirs.verdict]) for ours, theirs in pairs]
    return [n for n, ours, theirs in ranked if ours > theirs], [n for n, ours, theirs in ranked if ours < theirs]


def _costs(found: list[Effect], ours: Prediction, theirs: Prediction) -> bool:
    """Fewer tokens, a queue without end, or a latency that grows by more than another one falls."""
    if ours.over_capacity != theirs.over_capacity:
        return ours.over_capacity
    hurt = [e.cost.value for e in found if e.hurts]
    helped = [1 / e.cost.value for e in found if e.helps]
    tokens = any(e.hurts for e in found if e.name == "tokens_per_second")
    return tokens or max(hurt, default=1.0) > max(helped, default=1.0)


def _detail(found: list[Effect], worse: list[str], ours: Prediction, theirs: Prediction) -> str:
    """The losses, and the limits that would fare better."""
    parts = [str(e) for e in found if e.hurts]
    if ours.over_capacity and not theirs.over_capacity:
        parts.append("the stated rate is above what can be served, and without it is not")
    if worse:
        parts.append(f"without it {' and '.join(f'sla.{name}' for name in worse)} would fare better")
    return "; ".join(parts)


def _favour(found: list[Effect]) -> str:
    won = [str(e) for e in found if e.helps]
    return f" In its favour: {'; '.join(won)}." if won else ""
