"""Runs -> errors: what users of them saw beside its prediction, and beside another estimator's.

Of one stream a run has two or three requests, and its TTFT a noise of 9 %: the TTFT of runs of one load on engines that
differ in nothing that one request meets is judged by the mean over them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from deployc.cost.speed_basis import speed_basis
from deployc.measure.calibrate.score import NotScored, Scored
from deployc.measure.calibrate.speed.estimates import Estimates
from deployc.measure.calibrate.speed.row import QUANTITIES, SpeedRow, unit_of
from deployc.measure.calibrate.speed.sample import Sample, samples, serve
from deployc.types.figure import Figure, weakest

Predicted = tuple[Sample, Mapping[str, Figure]]
"""A run, and what is said of it by quantity."""


@dataclass(frozen=True, slots=True)
class Against:
    """Another estimator beside this model: the same figures of the same runs."""

    file: str
    name: str
    runs: int
    ours: tuple[Scored, ...]
    theirs: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class SpeedScore:
    """Every figure of every run: in one list or the other."""

    scored: tuple[Scored, ...]
    not_scored: tuple[NotScored, ...]
    against: Against | None = None


def score_runs(rows: Iterable[SpeedRow], other: Estimates | None = None) -> SpeedScore:
    """The speed model against these rows; no row is left out, and none stops the others."""
    made, left = samples(rows)
    done: list[Predicted] = []
    for run in made:
        try:
            done.append((run, predicted(run)))
        except Exception as wrong:  # a fault of ours on one row is listed with it; the others are scored
            reason = f"deployc failed on this row: {type(wrong).__name__}: {wrong}"
            left.append(NotScored(run.id, run.file, run.line, tuple(run.measured), reason))
    against = _against(done, other) if other is not None else None
    return SpeedScore(tuple(judged(done)), tuple(left), against)


def predicted(run: Sample) -> dict[str, Figure]:
    """Of all that was measured: the band is the model's error each way, around what the memory's own band leads to."""
    basis, left = speed_basis(run.facts, run.choices), run.available
    ends = [serve(run, basis, end) for end in dict.fromkeys((left.value, left.low, left.high))]
    made = {}
    for name in run.measured:
        values = [getattr(end, name) for end in ends]
        error = basis.error(name)
        made[name] = Figure(values[0], min(values) / error, max(values) * error, unit_of(name), basis.basis)
    return made


def judged(runs: Iterable[Predicted]) -> list[Scored]:
    """Each figure by itself, but for the TTFT of one stream: by the mean of alike ones."""
    done: list[Scored] = []
    alike: dict[tuple[str, Hashable], list[Predicted]] = {}
    for run, said in runs:
        for name, figure in said.items():
            if run.one_stream and name.startswith("ttft"):
                alike.setdefault((name, _family(run)), []).append((run, said))
            else:
                measured = run.measured[name]
                done.append(Scored(run.id, run.file, run.model, run.group, name, measured, figure, run.notes))
    done += [_mean(key[0], of) for key, of in alike.items()]
    return sorted(done, key=lambda one: QUANTITIES.index(one.quantity))


def _family(run: Sample) -> tuple[Hashable, ...]:
    """What one request at a time meets of an engine and a load."""
    choices, load = run.choices, run.load
    return (
        run.group, run.model, choices.tensor_parallel_size.value, choices.kv_cache_dtype.value,
        choices.max_num_batched_tokens.value, choices.max_lora_rank and choices.max_lora_rank.value,
        fmean(load.inputs), fmean(load.outputs), load.shared_prefix,
    )  # fmt: skip


def _mean(name: str, of: Sequence[Predicted]) -> Scored:
    first, figures = of[0][0], [said[name] for _, said in of]
    value, low, high = (fmean(getattr(figure, end) for figure in figures) for end in ("value", "low", "high"))
    figure = Figure(value, low, high, figures[0].unit, weakest(each.basis for each in figures))
    measured = fmean(run.measured[name] for run, _ in of)
    notes = tuple(dict.fromkeys(note for run, _ in of for note in run.notes))
    runs = tuple(run.id for run, _ in of)
    return Scored(first.id, first.file, first.model, first.group, name, measured, figure, notes, mean_of=runs)


def _against(done: Sequence[Predicted], other: Estimates) -> Against:
    """Both on the runs and quantities that the other one has too."""
    ours: list[Predicted] = []
    theirs: list[Predicted] = []
    for run, said in done:
        of = {name: value for name, value in other.of.get(run.id, {}).items() if name in said}
        if of:
            ours.append((run, {name: said[name] for name in of}))
            theirs.append((run, {n: Figure(v, v, v, unit_of(n), "modelled") for n, v in of.items()}))
    return Against(other.file, other.name, len(ours), tuple(judged(ours)), tuple(judged(theirs)))
