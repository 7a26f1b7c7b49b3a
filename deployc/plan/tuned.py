"""The document of `deployc tune`: the choice with its reasons, the front, what was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from deployc.choose.tune import Tuned
from deployc.choose.tune.change import Change, value_of
from deployc.choose.tune.reasons import Setting
from deployc.choose.tune.space import OPEN
from deployc.choose.tune.verdict import Run
from deployc.diagnostics import Report
from deployc.plan import figures
from deployc.plan.document import FORMAT_VERSION, diagnostics
from deployc.spec.deploy import Deploy
from deployc.types.figure import Figure


def document(
    deploy: Deploy, tuned: Tuned, settings: Sequence[Setting], made: Iterable[Change], report: Report,
    *, written: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """All of it; keys as in docs/reference.md. `written`: the file that now has the changes."""
    chosen = _run(tuned, tuned.chosen) if tuned.chosen else None
    if chosen is not None:
        chosen["settings"] = [_setting(one) for one in settings]
    return {
        "format_version": FORMAT_VERSION,
        "name": deploy.name,
        "workload": deploy.workload.model_dump(exclude_none=True),
        "cost_unit": "money/h" if tuned.money else "cards",
        "limits_hold_for": "band" if tuned.sure else "value",
        "chosen": chosen,
        "nearest": _run(tuned, tuned.nearest) if tuned.nearest else None,
        "front": [_run(tuned, run) for run in tuned.front],
        "counts": {
            name: getattr(tuned, name) for name in ("candidates", "not_starting", "bounded", "simulated", "left")
        },
        "changes": [{"key": ".".join(change.path), "value": change.value} for change in made],
        "written": written,
        "diagnostics": diagnostics(report),
    }


def _run(tuned: Tuned, run: Run) -> dict[str, Any]:
    cards, speed = run.candidate.cards, run.prediction.speed
    cost = tuned.cost(cards)
    each = speed.tokens_per_second
    per_cost = Figure(each.value / cost, each.low / cost, each.high / cost, f"1/s/{_unit(tuned)}", each.basis)
    return {
        "gpu": cards.name,
        "count": cards.count,
        "cost": cost,
        "configuration": {name: value_of(run.candidate.choices, name) for name in OPEN},
        "speed": {field.name: _figure(getattr(speed, field.name)) for field in fields(speed)},
        "tokens_per_second_for_cost": _figure(per_cost),
        "kv_cache_tokens": _figure(run.prediction.kv_cache_tokens),
        "bound_by": run.prediction.bound_by,
        "over_capacity": run.prediction.over_capacity,
        "transferred_from": run.prediction.transferred_from,
        "sla": [
            figures.sla_line(line) | {"unit": line.limit.unit, "predicted": _figure(line.predicted)}
            for line in run.lines
        ],
    }


def _unit(tuned: Tuned) -> str:
    return "(money/h)" if tuned.money else "card"


def _setting(of: Setting) -> dict[str, Any]:
    return {
        "name": of.name, "value": of.value, "before": of.before, "because": of.because, "reason": of.reason
    }  # fmt: skip


def _figure(of: Figure) -> dict[str, Any]:
    return figures.figure(of) | {"unit": of.unit}
