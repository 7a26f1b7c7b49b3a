"""Starts -> errors: every measured figure beside its prediction, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deployc.measure.calibrate.config import Unknown
from deployc.measure.calibrate.quantities import GIVEN_KV, ROUNDING, predicted, rests_on
from deployc.measure.calibrate.rows import Row
from deployc.measure.calibrate.start import Start, start
from deployc.types.figure import Figure

_DOUBT = 0.03
"""From which error of the weights a recalled config is doubted in the row's notes."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One figure of one row. Sizes in GiB, times in s; `error` is relative, None where nothing or less was measured."""

    id: str
    file: str
    model: str  # as the row names it
    group: str
    quantity: str
    measured: float
    predicted: Figure
    notes: tuple[str, ...]
    mean_of: tuple[str, ...] = ()  # ids of the rows whose mean it is; none: it is of this row alone

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return (self.predicted.value - self.measured) / self.measured if self.measured > 0 else None

    @property
    def inside_band(self) -> bool:
        """Whether the measured figure lies within the prediction's band, to the rounding of the log."""
        room = ROUNDING if self.quantity.endswith("_gib") or self.quantity.startswith("max_concurrency") else 0
        return self.predicted.low - room <= self.measured <= self.predicted.high + room


@dataclass(frozen=True, slots=True)
class NotScored:
    """A row, or some of its figures, without a prediction."""

    id: str
    file: str
    line: int
    quantities: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """Every figure of every row: in one list or the other."""

    scored: tuple[Scored, ...]
    not_scored: tuple[NotScored, ...]


def score(rows: Iterable[Row]) -> Score:
    """The cost model against these rows; no row is left out, and none stops the others."""
    scored: list[Scored] = []
    left: list[NotScored] = []
    for row in rows:
        done, undone = _row(row)
        scored += done
        left += undone
    return Score(tuple(scored), tuple(left))


def _row(row: Row) -> tuple[list[Scored], list[NotScored]]:
    names = tuple(row.measured)
    if not names:
        return [], [NotScored(row.id, row.file, row.line, (), "nothing that is predicted was measured")]
    try:
        return _figures(row, start(row))
    except Unknown as unknown:
        reason = str(unknown)
    except Exception as wrong:  # a fault of ours on one row is listed with it; the others are scored
        reason = f"deployc failed on this row: {type(wrong).__name__}: {wrong}"
    return [], [NotScored(row.id, row.file, row.line, names, reason)]


def _figures(row: Row, begun: Start) -> tuple[list[Scored], list[NotScored]]:
    made = predicted(begun, row.measured)
    scored: list[Scored] = []
    missing: dict[str, list[str]] = {}
    notes = begun.notes + ((f"the row: {row.said}",) if row.said else ())
    if row.recalled and "weights_gib" in made:
        notes += _doubt(made["weights_gib"].value, row.measured["weights_gib"], begun)
    for name, figure in made.items():
        needs = rests_on(name, begun.facts)
        without = next((begun.missing[need] for need in sorted(needs) if need in begun.missing), None)
        if without is not None:
            missing.setdefault(without, []).append(name)
            continue
        measured = row.measured[next((old for old, new in GIVEN_KV.items() if new == name), name)]
        group = _group(row, begun, assumed=bool(needs & begun.assumed))
        scored.append(Scored(row.id, row.file, row.model, group, name, measured, figure, notes))
    return scored, [NotScored(row.id, row.file, row.line, tuple(of), why) for why, of in missing.items()]


def _doubt(said: float, measured: float, begun: Start) -> tuple[str, ...]:
    """A recalled shape whose weights are not those that were loaded may be wrong itself."""
    if measured <= 0 or abs(said / measured - 1) <= _DOUBT:
        return ()
    if begun.facts.model.quantization:  # packed, so their elements are no parameters
        return ("the recalled config may be wrong: the weights disagree",)
    count = begun.facts.model.parameters / 1e9
    return (f"the recalled config has {count:.2f} billion parameters and may be wrong: the weights disagree",)


def _group(row: Row, begun: Start, *, assumed: bool) -> str:
    """ "H200, vLLM 0.25.1, own starts"; figures out of threads by whether the card is an H100."""
    if row.kind in ("own starts", "full logs"):
        parts = [begun.card or "unnamed card", f"vLLM {row.version}" if row.version else "unknown version", row.kind]
    else:
        parts = [row.kind, "H100" if begun.card == "H100" else "other cards" if begun.card else "unnamed card"]
    return ", ".join([*parts, *(["inputs assumed"] if assumed else [])])
