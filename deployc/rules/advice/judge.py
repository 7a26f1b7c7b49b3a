"""Every setting that the file writes, with it and without it: one simulation a candidate that is written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from deployc.cost.other_cards import starts
from deployc.cost.prediction import setting as set_up
from deployc.cost.prediction import speed
from deployc.cost.speed_basis import speed_basis
from deployc.diagnostics import Diagnostic, warning
from deployc.rules import flags, sla, start
from deployc.rules.advice.effect import LEAST, Effect, effects
from deployc.rules.advice.table import SETTINGS, Setting
from deployc.rules.case import Case
from deployc.types.choices import Choices
from deployc.types.figure import weakest
from deployc.types.prediction import SlaLine

RANK = {"meets": 0, "tight": 1, "misses": 2}


def settings(case: Case) -> Iterator[Diagnostic]:
    """A warning for each that costs more than it gives. What does not start has other troubles."""
    if case.on_cpu or not starts(case.facts, case.choices) or any(flags.coherent(case)):
        return
    for setting in SETTINGS:
        yield from judged(case, setting)


def under(case: Case, choices: Choices) -> Case:
    """The case under other choices: its memory, and its load followed once."""
    at = set_up(case.deploy, case.facts, choices)
    there = replace(case.prediction, memory=at.bill, max_concurrency=at.cache.concurrency, speed=speed(at))
    return replace(case, choices=choices, prediction=there)


def judged(case: Case, setting: Setting) -> Iterator[Diagnostic]:
    """A warning where this one costs more than it gives."""
    without = setting.without(case)
    if without is None or not starts(case.facts, without.choices):
        return
    other = under(case, without.choices)
    if any(start.graphs_outside_the_budget(other)):
        return  # then the setting is what a rule about memory advises
    found = effects(case.prediction.speed, other.prediction.speed, speed_basis(case.facts, case.choices).errors)
    worse, better = verdicts(case, other)
    if better or not (worse or _costs(found)):
        return
    basis = weakest(effect.cost.basis for effect in found)
    lost = [str(effect) for effect in found if effect.hurts]
    lost += [f"without it {' and '.join(f'sla.{name}' for name in worse)} would fare better"] if worse else []
    won = [str(effect) for effect in found if effect.helps]
    favour = f" In its favour: {'; '.join(won)}." if won else ""
    yield warning(
        setting.code,
        setting.summary,
        f"{without.compared}: {'; '.join(lost)} ({basis}).{favour}",
        without.fix,
        case.at(setting.flag, setting.key),
        basis,
    )


def verdicts(case: Case, other: Case) -> tuple[list[str], list[str]]:
    """Limits of the SLA that are judged worse here than there, and those that here are met better, or missed by less:
    there the SLA's own advice must not be undone."""
    here, there = (sla.lines(each.deploy, each.prediction) for each in (case, other))
    worse, better = [], []
    for one, two in zip(here, there, strict=True):
        if _above(one, two) and RANK[one.verdict] > RANK[two.verdict]:
            worse.append(one.name)
        if _above(two, one) and (one.verdict != "meets" or two.verdict != "meets"):
            better.append(one.name)
    return worse, better


def _above(one: SlaLine, other: SlaLine) -> bool:
    """Whether the first is farther on the wrong side, by enough to speak of."""
    far, near = (one, other) if one.name in sla.UPPER else (other, one)
    return far.predicted.value >= near.predicted.value * (1 + LEAST)


def _costs(found: list[Effect]) -> bool:
    """Fewer tokens, a queue without end, or a latency that grows by more than another one falls."""
    hurt = [effect.cost.value for effect in found if effect.hurts]
    helped = [1 / effect.cost.value if effect.cost.value else math.inf for effect in found if effect.helps]
    tokens = any(effect.hurts for effect in found if effect.name == "tokens_per_second")
    return math.inf not in helped and (tokens or max(hurt, default=1.0) > max(helped, default=1.0))
