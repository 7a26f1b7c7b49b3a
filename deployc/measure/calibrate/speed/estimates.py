"""What another estimator says of the same runs: JSON lines of `id` and `predicted_matched` (or `predicted`).

Its `out_tok_s`, `req_s`, `ttft_ms`, `tpot_ms` and `e2e_ms` are one figure each, set beside the median of what was
measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deployc.diagnostics import Report, error
from deployc.measure.calibrate.cells import Cells
from deployc.measure.calibrate.json_lines import first_of, json_lines, place
from deployc.measure.calibrate.speed.row import RATES, TIMES


@dataclass(frozen=True, slots=True)
class Estimates:
    """By a run's id and quantity: seconds and 1/s."""

    file: str
    name: str
    of: Mapping[str, Mapping[str, float]]


def estimates(path: Path) -> tuple[Estimates, Report]:
    """Every estimate of a file. DC670: it cannot be read; DC671: a line is not JSON; DC673: it is no estimate."""
    report = Report()
    names: dict[str, None] = {}
    found: dict[str, Mapping[str, float]] = {}
    wrong: list[tuple[int, str]] = []
    for number, values in json_lines(path, report):
        row = Cells(values if isinstance(values, dict) else {})
        name, said = row.text("id"), _figures(row)
        if name is None:
            wrong.append((number, "it has no id"))
        elif not said:
            wrong.append((number, "it has no figure above zero under predicted_matched or predicted"))
        else:
            found[name] = said
            names[row.text("tool") or path.stem] = None
    if not found and not wrong and not report.errors:
        wrong.append((1, "the file is empty"))
    if wrong:
        fix = "Each line has the id of a run, and predicted_matched or predicted: {out_tok_s, tpot_ms, …}."
        report.add(error("DC673", "these are no estimates of runs", first_of(wrong), fix, place(path, wrong)))
    return Estimates(str(path), ", ".join(names) or path.stem, found), report


def _figures(row: Cells) -> dict[str, float]:
    cells = Cells(row.object("predicted_matched") or row.object("predicted"))
    times = cells.measured({key: f"{name}_p50" for key, name in TIMES.items()})
    made = cells.measured(RATES) | {name: milliseconds / 1000 for name, milliseconds in times.items()}
    return {name: value for name, value in made.items() if value > 0}
