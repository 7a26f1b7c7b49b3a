"""Files of JSON lines -> rows: what is no row is a diagnostic with file and line.

Three formats are told apart by the keys that each always has: own starts (`engine_version`, `available_kv_gib`), starts
made by others (`vllm_version`, `basis`), and runs, of which the speed was measured (`load`, and a figure of speed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deployc.diagnostics import Diagnostic, Report, error
from deployc.measure.calibrate.json_lines import first_of, json_lines, place
from deployc.measure.calibrate.rows import Row, own_start, published_start
from deployc.measure.calibrate.speed.row import RATES, TIMES, SpeedRow, speed_row, with_memory


@dataclass(slots=True)
class Rows:
    """Starts, of which the memory was measured, and runs, of which the speed was."""

    starts: list[Row] = field(default_factory=list)
    runs: list[SpeedRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.starts or self.runs)


def read(paths: Iterable[Path]) -> tuple[Rows, Report]:
    """Every row of every file. DC670: a file cannot be read; DC671: a line is not JSON; DC672: no measured row."""
    rows, report = Rows(), Report()
    for path in paths:
        faults = Report()
        lines = json_lines(path, faults)
        no_row = [(number, _what_it_is(values)) for number, values in lines if not _taken(values, path, number, rows)]
        if not lines and not faults.errors:
            no_row = [(1, "the file is empty")]
        if no_row:
            faults.add(_no_row(path, no_row))
        report.extend(faults)
    rows.runs = with_memory(rows.runs, rows.starts)
    return rows, report


def _taken(values: object, path: Path, line: int, into: Rows) -> bool:
    """Whether the keys are those of a format; a run tells the speed, and what it says of memory besides is not read."""
    if not isinstance(values, dict):
        return False
    if "load" in values and (RATES.keys() | TIMES.keys()) & values.keys():
        into.runs.append(speed_row(values, str(path), line))
    elif "engine_version" in values and "available_kv_gib" in values:
        into.starts.append(own_start(values, str(path), line))
    elif "vllm_version" in values and "basis" in values:
        into.starts.append(published_start(values, str(path), line))
    else:
        return False
    return True


def _what_it_is(values: object) -> str:
    if not isinstance(values, Mapping):
        return f"{str(values)[:40]!r} is no object"
    if "load" in values:
        return f"it has a load, and no figure of speed ({', '.join([*RATES, *TIMES])})"
    return f"its keys are {', '.join(map(str, list(values)[:6])) or 'none'}"


def _no_row(path: Path, lines: list[tuple[int, str]]) -> Diagnostic:
    fix = (
        "A row of memory has engine_version and available_kv_gib (own starts), or vllm_version and basis (others'); a "
        "row of speed has load and out_tok_s."
    )
    return error("DC672", "these are no measured rows", first_of(lines), fix, place(path, lines))
