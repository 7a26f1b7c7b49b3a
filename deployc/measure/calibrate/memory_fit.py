"""Fits the constants of the memory model on measured starts, and scores them on models they were not fitted on.

`python -m deployc.measure.calibrate.memory_fit [--write] [FILE…]`: what is fitted, its errors in the sample and with
each model left out in turn; --write puts the fitted values into profiles/. Without files, the rows that ship with the
tool. Everything else in the model is read in the engine's sources and is not fitted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from deployc import files
from deployc.cost.activations import activations
from deployc.cost.cuda_graphs import graph_parts
from deployc.data import profiles
from deployc.diagnostics import Stop
from deployc.measure.calibrate.config import Unknown
from deployc.measure.calibrate.lines import read
from deployc.measure.calibrate.start import Start, start

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Sample:
    """One start and what was measured of it, bytes."""

    model: str
    start: Start
    measured: float


def samples(paths: Iterable[Path], quantity: str) -> list[Sample]:
    """Starts whose inputs are all known and whose `quantity` was measured; alike starts once. Stages are left out."""
    rows, report = read(paths)
    if report.errors:
        raise Stop(report)
    found: dict[Any, Sample] = {}
    for row in rows.starts:
        try:
            begun = start(row)
        except Unknown:
            continue
        one_stage = begun.choices.pipeline_parallel_size.value == 1
        if row.measured.get(quantity) and not begun.assumed and not begun.missing and one_stage:
            sample = Sample(row.model.rpartition("/")[2].lower(), begun, row.measured[quantity] * GIB)
            found.setdefault((sample.model, begun.choices, begun.warm, sample.measured), sample)
    return list(found.values())


def peak(sample: Sample, constants: Mapping[str, float]) -> float:
    """The predicted activation peak under these constants, bytes."""
    facts = sample.start.facts
    known = facts.calibration.memory
    fixed = replace(known.activation_fixed, value=constants["activation_fixed"], low=0.0, high=1e12)
    tables = replace(known.compile_tables, value=0.0, low=0.0, high=0.0) if sample.start.warm else known.compile_tables
    engine = replace(known, activation_fixed=fixed, compile_tables=tables)
    facts = replace(facts, calibration=replace(facts.calibration, engine=engine))
    return activations(facts, sample.start.choices).value


def fit_peak(training: Sequence[Sample]) -> dict[str, float]:
    """The one constant with the least mean absolute error: the median of what is missing without it."""
    missing = [sample.measured - peak(sample, {"activation_fixed": 0.0}) for sample in training]
    return {"activation_fixed": max(0.0, median(missing))}


def graphs(sample: Sample, constants: Mapping[str, float]) -> float:
    """The predicted memory of CUDA graphs, bytes."""
    nodes, pool = _parts(sample)
    return constants["graph_bytes_per_size_layer"] * nodes + constants["graph_pool_layers"] * pool


def _parts(sample: Sample) -> tuple[float, float]:
    return graph_parts(sample.start.facts, sample.start.choices, sample.start.facts.model.architecture.layers)


def fit_graphs(training: Sequence[Sample]) -> dict[str, float]:
    """Two constants by least squares of relative errors: the normal equations of two unknowns."""
    rows = [(*_parts(sample), sample.measured) for sample in training]
    a, b, c = (sum(r[i] * r[j] / r[2] ** 2 for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    p, q = (sum(r[i] / r[2] for r in rows) for i in (0, 1))
    determinant = a * c - b * b
    return {
        "graph_bytes_per_size_layer": (c * p - b * q) / determinant,
        "graph_pool_layers": (a * q - b * p) / determinant,
    }


Fit = Callable[[Sequence[Sample]], dict[str, float]]
Predict = Callable[[Sample, Mapping[str, float]], float]
Band = tuple[float, float, float]
"""Value, low, high."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One model left out: the constants fitted on the others, and each of its starts with what they predict."""

    constants: Mapping[str, float]
    predicted: tuple[tuple[Sample, float], ...]


def folds(of: Sequence[Sample], fit: Fit, predict: Predict) -> list[Fold]:
    """Every model left out in turn."""
    made = []
    for model in sorted({sample.model for sample in of}):
        constants = fit([sample for sample in of if sample.model != model])
        rows = tuple((sample, predict(sample, constants)) for sample in of if sample.model == model)
        made.append(Fold(constants, rows))
    return made


def main(arguments: list[str] | None = None) -> int:
    """Print both fits; 0."""
    parser = argparse.ArgumentParser(prog="python -m deployc.measure.calibrate.memory_fit")
    rows = profiles() / "calibration" / "rows"
    parser.add_argument("files", nargs="*", type=Path, default=sorted(rows.glob("*_memory.jsonl")))
    parser.add_argument("--write", action="store_true", help="put the fitted values into profiles/")
    options = parser.parse_args(arguments)
    peaks = samples(options.files, "activation_peak_gib")
    dense = [s for s in samples(options.files, "cudagraph_gib") if not s.start.facts.model.architecture.experts]
    constants, left_out = _report("activation peak", peaks, fit_peak, peak)
    short = max(sample.measured - made for fold in left_out for sample, made in fold.predicted)
    fixed = constants["activation_fixed"]
    found = {"activation_fixed": (fixed, 0.0, fixed + short)}  # up to what a start took beyond its prediction
    constants, left_out = _report("CUDA graphs, dense models", dense, fit_graphs, graphs)
    ratios = [sample.measured / made for fold in left_out for sample, made in fold.predicted]
    found |= {name: (value, value * min(ratios), value * max(ratios)) for name, value in constants.items()}
    if options.write:
        _write(found)
    return 0


def _report(what: str, of: Sequence[Sample], fit: Fit, predict: Predict) -> tuple[dict[str, float], list[Fold]]:
    """Print the fit over all samples beside the errors of the folds; both of them."""
    constants, left_out = fit(of), folds(of, fit, predict)
    inside = fmean(abs(predict(sample, constants) - sample.measured) for sample in of)
    errors = [(made - sample.measured, sample.model) for fold in left_out for sample, made in fold.predicted]
    worst, at = max(errors, key=lambda pair: abs(pair[0]))
    sys.stdout.write(
        f"{what}: {len(of)} starts of {len(left_out)} models\n"
        + "".join(f"  {name} = {value:,.4g}\n" for name, value in constants.items())
        + f"  mean absolute error: {inside / GIB:.3f} GiB in the sample, "
        f"{fmean(abs(error) for error, _ in errors) / GIB:.3f} with each model left out "
        f"(worst {worst / GIB:+.2f}, {at})\n"
    )
    return constants, left_out


def _write(found: Mapping[str, Band]) -> None:
    """Behaviours of versions and constants of all versions lie in files of their own."""
    behaviours, factors = profiles() / "engines" / "memory.json", profiles() / "calibration" / "vllm.json"
    versions, constants = (json.loads(path.read_bytes()) for path in (behaviours, factors))
    for name, band in found.items():
        entries = versions["behaviours"].get(name)
        target = entries[-1]["value"] if entries else constants["factors"][name]
        target.update(zip(("value", "low", "high"), band, strict=True))
    files.write(behaviours, json.dumps(versions, indent=1) + "\n", mode=0o644)
    files.write(factors, json.dumps(constants, indent=1) + "\n", mode=0o644)


if __name__ == "__main__":
    raise SystemExit(main())
