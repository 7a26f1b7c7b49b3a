"""Calibration from the tool's side: the job for the quantizer's own process, and that process run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deployc.build import process
from deployc.build.calibrated import faults
from deployc.build.text.read import read_text
from deployc.diagnostics import Report, Severity, Stop
from deployc.files import beside
from deployc.types.bundle import Recipe
from deployc.types.manifest import Content, Progress
from deployc.types.scheme import Scheme

METHODS: Mapping[str, str] = {"int4-gptq": "gptq", "int4-awq": "awq"}
"""`quantization.weights` that is always made by calibration, and how."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The 16-bit model to calibrate: a folder that transformers loads, tokenizer included.

    `source` is the model as people name it, `shards` are file names in `folder`, `quantized` and `left_alone` as
    build/quantize/layers.py says of its tensors.
    """

    folder: Path
    source: str
    shards: Sequence[str]
    quantized: Mapping[str, Scheme]
    left_alone: Sequence[str]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What is in place now. `quantization_config` belongs into config.json; `seconds` by phase; notes are warnings."""

    shards: Mapping[str, Content]
    quantization_config: Mapping[str, Any]
    versions: Mapping[str, str]
    torch: str
    threads: int
    seconds: Mapping[str, float]
    notes: Report


def method(recipe: Recipe) -> str | None:
    """ "gptq", "awq" or "smoothquant" where the recipe's weights are made with text, else None."""
    return "smoothquant" if recipe.weights == "int8" and recipe.smoothquant else METHODS.get(recipe.weights)


def calibrate(
    recipe: Recipe,
    merged: Merged,
    into: Path,
    *,
    folder: Path,
    python: Path | None,
    lock: int,
    progress: Callable[[Progress], None],
    threads: int | None = None,
) -> Calibrated:
    """Put the quantized shards into `into`, under names of their own (model.safetensors, or model-00001-of-0000N).

    `folder` is that of the deploy.yaml; `python` the quantizer environment's interpreter (apply.quantizer.locate),
    None where it was not made; `lock` the store's, which the process inherits. Nothing of a calibration can be gone on
    with: llm-compressor 0.14 keeps no state. Keep `merged` until this returns, and it is all that need not be repeated.
    Raises Stop: DC260, DC261, DC264, DC273 …; then nothing is in `into` that was not there before.
    """
    how = method(recipe)
    if how is None or recipe.calibration is None:
        raise ValueError(f"{recipe.weights} needs no calibration")
    if python is None:
        raise Stop(faults.no_quantizer(recipe.weights))
    job, notes = _job(recipe, merged, into, how, beside(folder, recipe.calibration.path))
    result = process.run(str(python), {**job, "threads": threads}, lock, progress, module=WORKER)
    return Calibrated(
        shards={name: Content(**content) for name, content in result["shards"].items()},
        quantization_config=result["quantization_config"],
        versions=result["versions"],
        torch=result["torch"],
        threads=result["threads"],
        seconds=result["seconds"],
        notes=notes,
    )


WORKER = "deployc.build.calibrated.worker"


def _job(recipe: Recipe, merged: Merged, into: Path, how: str, path: Path) -> tuple[dict[str, Any], Report]:
    text = recipe.calibration
    assert text is not None  # noqa: S101  # `calibrate` looked
    lines, report = read_text(path, text.samples, text.path)
    if report.errors:
        raise Stop(report)
    job = {
        "into": str(into.absolute()),
        "model": str(merged.folder.absolute()),
        "source": merged.source,
        "shards": list(merged.shards),
        "method": how,
        "group_size": recipe.group_size,
        "strength": recipe.smoothquant,
        "quantized": {name: asdict(scheme) for name, scheme in merged.quantized.items()},
        "left_alone": list(merged.left_alone),
        "dtype": recipe.dtype,
        "text": {"shown": text.path, "tokens": text.tokens, "lines": [asdict(line) for line in lines]},
    }
    return job, Report([d for d in report if d.severity is Severity.WARNING])
