"""Measuring an artifact from the tool's own process, and the manifest that keeps what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from deployc.build import faults, process
from deployc.build.quality import faults as quality_faults
from deployc.build.quality import figures
from deployc.build.quality.worst import worst
from deployc.build.store import shelf
from deployc.build.text.read import read_text
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Report, Stop
from deployc.files import beside
from deployc.rules.quality import asks_no_json
from deployc.types.bundle import Measurement, Text
from deployc.types.manifest import Manifest, Progress
from deployc.types.quality import METHOD, Answer, Quality, ValidJson


def needed(manifest: Manifest, measurement: Measurement) -> bool:
    """Whether an artifact is still to be measured on this text: limits alone need no new figures."""
    return manifest.quality is None or not manifest.quality.is_of(measurement.text)


def with_quality(store: Path, manifest: Manifest, quality: Quality) -> Manifest:
    """The manifest of a finished artifact, written anew by one rename, with what was measured."""
    known = replace(manifest, quality=quality)
    shelf.write_manifest(store / manifest.key, known)
    return known


def measure(
    measurement: Measurement,
    reference: Path,
    artifact: Path,
    folder: Path,
    python: str,
    lock: int,
    progress: Callable[[Progress], None],
) -> tuple[Quality, Report]:
    """The artifact's figures beside those of the 16-bit model in `reference`, and warnings about the text.

    `folder` is that of the deploy.yaml; `python` the build interpreter. Both models run one after the other, on the GPU
    where torch sees one that holds a model, else on the CPU. The reference's logits lie in a file without a name beside
    the artifact meanwhile: tokens · vocabulary · 2 bytes. Raises Stop DC261, DC265, DC266, DC271, DC277, DC278, DC286.
    """
    path, text = beside(folder, measurement.text.path), measurement.text
    lines, report = read_text(path, text.samples, text.path)
    if report.errors:
        raise Stop(report)
    digest = f"sha256:{sha256(path)}"
    if text.digest not in ("", digest):
        raise Stop(faults.changed_inputs(text.path, ["the text that quality is measured on"]))
    if measurement.min_valid_json is not None and not any(line.json and line.messages for line in lines):
        raise Stop(asks_no_json())
    job = {
        "reference": str(reference.absolute()),
        "artifact": str(artifact.absolute()),
        "into": str(artifact.absolute().parent),
        "lines": [asdict(line) for line in lines],
        "tokens": text.tokens,
        "shown": text.path,
        "device": None,
    }
    found = process.run(python, job, lock, progress, module="deployc.build.quality.worker")
    return quality(replace(text, digest=digest), found), report


def quality(text: Text, found: Mapping[str, Any]) -> Quality:
    """Figures of what the worker counted. Raises Stop DC265 where that is too little."""
    units = [(int(n), float(a), float(b), float(kl), int(same)) for n, a, b, kl, same in found["units"]]
    if len(units) < 2:
        raise Stop(quality_faults.nothing_to_score(text.path, text.tokens))
    valid = None
    if found["valid_json"]:
        asked, of_reference, of_artifact = found["valid_json"]
        valid = ValidJson(asked, figures.share(of_reference, asked), figures.share(of_artifact, asked))
    return Quality(
        method=METHOD,
        text=text,
        lines=found["lines"],
        tokens=found["tokens"],
        **figures.likeness(units),
        valid_json=valid,
        answers=tuple(Answer(**answer) for answer in found["answers"]),
        worst_layers=worst(found["squares"]),
        not_covered=tuple(found["not_covered"]),
        device=found["device"],
        seconds=found["seconds"],
    )
