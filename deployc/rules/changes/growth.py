"""The cheapest change that raises the capacity: by arithmetic, scaled to the capacity that was simulated."""

from __future__ import annotations

from deployc.cost.capacity import latencies
from deployc.cost.estimate import highest
from deployc.cost.other_cards import starts
from deployc.cost.prediction import Setting, setting
from deployc.rules.case import Case
from deployc.rules.changes.search import off_by, options
from deployc.types.figure import Figure
from deployc.types.prediction import Growth

MORE = 1.15
"""Times the capacity from which a change is worth a word."""


def growth(case: Case) -> Growth | None:
    """None where no change that is known gives more, and where the engine may not start as it is."""
    if not starts(case.facts, case.choices):
        return None
    stated, now = latencies(case.deploy.sla), case.prediction.capacity.value
    off = off_by(case, list(stated))
    limits = {name: limit / off[name] for name, limit in stated.items() if off[name]}  # 0: there is no such time
    counted = highest(setting(case.deploy, case.facts, case.choices), limits)
    scale = now / counted if now and counted else 1.0
    for _, alike in options(case):
        for option in alike:
            then = highest(option.setting, limits) * scale
            if then > now * MORE:
                return Growth(option.words, _banded(then, option.setting))
    return None


def _banded(value: float, at: Setting) -> Figure:
    return Figure(value, value / at.error, value * at.error, "1/s", at.basis.basis)
