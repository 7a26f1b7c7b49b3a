"""`accept`: a predicted error becomes a warning, with the user's reason beside it."""

from __future__ import annotations

from deployc.diagnostics import Report, Severity, warning
from deployc.spec.deploy import Deploy


def accept(deploy: Deploy, report: Report) -> Report:
    """The report with accepted errors lowered. Only a prediction that is not exact can be accepted."""
    result = Report(list(report))
    for index, entry in enumerate(deploy.accept):
        at = deploy.at(f"accept.{index}.code")
        named = [i for i, d in enumerate(result.diagnostics) if d.code == entry.code]
        predicted = [i for i in named if result.diagnostics[i].basis not in ("", "exact")]
        for i in predicted:
            if result.diagnostics[i].severity is Severity.ERROR:
                result.lowered(i, entry.reason)
        warned = [i for i in named if result.diagnostics[i].severity is not Severity.ERROR]
        if not predicted and not warned:
            why = "it is a fact, not a prediction" if named else "nothing of that code was found"
            result.add(
                warning("DC605", "an acceptance has no effect", f"{entry.code}: {why}.", "remove it from accept", at)
            )
    return result
