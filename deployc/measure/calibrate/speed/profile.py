"""A fit as an entry of profiles/calibration/speed.json, with the bands that rows it did not see gave it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deployc import files
from deployc.data import profiles
from deployc.measure.calibrate.speed.bands import factors
from deployc.measure.calibrate.speed.folds import Residual
from deployc.measure.calibrate.speed.names import OF_KERNEL, PLAIN
from deployc.measure.calibrate.speed.sample import Sample

DIGITS = 4


def profile(
    samples: Sequence[Sample],
    fitted: Mapping[str, float],
    by_configuration: Sequence[Residual],
    by_kind: Sequence[Residual],
    said: str,
) -> dict[str, Any]:
    """`samples` are of one card and one version."""
    card = samples[0].facts.smallest
    return {
        "gpu": card.name,
        "compute_capability": list(card.compute_capability or (0, 0)),
        "engine_version": samples[0].version,
        "said": said,
        "rows": sorted({Path(sample.file).name for sample in samples}),
        "measured": sorted(frozenset().union(*(sample.kinds for sample in samples))),
        "constants": _constants(fitted),
        "errors": {"measured": _rounded(factors(by_configuration)), "transferred": _rounded(factors(by_kind))},
    }


def _constants(fitted: Mapping[str, float]) -> dict[str, Any]:
    kernels = sorted({name.split(".")[0] for name in fitted if "." in name})
    of = {kernel: {name: _round(fitted[f"{kernel}.{name}"]) for name in OF_KERNEL} for kernel in kernels}
    return {"kernels": of, **{name: _round(fitted[name]) for name in PLAIN}}


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def write(entry: Mapping[str, Any], path: Path | None = None) -> Path:
    """Puts the entry in place of the one for the same card and version, of which name and `modelled` errors stay."""
    path = path or profiles() / "calibration" / "speed.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    entries = document["profiles"]
    same = [e for e in entries if (e["gpu"], e["engine_version"]) == (entry["gpu"], entry["engine_version"])]
    before = same[0] if same else entries[0]
    made = {**entry, "errors": {**entry["errors"], "modelled": before["errors"]["modelled"]}}
    made["said"] = before["said"] if same else entry["said"]
    place = entries.index(same[0]) if same else len(entries)
    entries[place : place + len(same)] = [made]
    files.write(path, json.dumps(document, indent=1) + "\n")
    return path
