"""Calibration from the tool's side: the job for the quantizer's own process, and that process run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deployc.build import process
from deployc.build.calibrated import faults
from deployc.build.faults import changed_inputs
from deployc.build.text.read import Line, read_text
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Report, Severity, Stop
from deployc.emit import calibration
from deployc.files import beside
from deployc.types.bundle import Recipe
from deployc.types.manifest import Content, Progress
from deployc.types.scheme import Scheme

WORKER = "deployc.build.calibrated.worker"


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
    return calibration.method(recipe.weights, recipe.smoothquant)


def ready(recipe: Recipe, *, folder: Path, python: Path | None) -> tuple[Path, list[Line], Report]:
    """The quantizer's interpreter, the lines of text, and warnings: what can be known before the model is merged.

    Arguments as of `calibrate`. Raises Stop: DC260, DC261, and DC277 where the text is not what was planned with.
    """
    text, wrong = recipe.calibration, Report()
    if text is None:
        raise ValueError(f"a recipe of {recipe.weights} without text")
    if python is None:
        wrong.add(faults.no_quantizer(recipe.weights))
    path = beside(folder, text.path)
    lines, found = read_text(path, text.samples, text.path)
    wrong.extend(found.errors)
    if not found.errors and text.digest and f"sha256:{sha256(path)}" != text.digest:
        wrong.add(changed_inputs(text.path, ["the text of calibration"]))
    if wrong.errors or python is None:
        raise Stop(wrong)
    return python, lines, Report([d for d in found if d.severity is Severity.WARNING])


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

    `folder` is that of the deploy.yaml; `python` what apply.quantizer.locate_quantizer found, None where there is
    nothing; `lock` the store's, which the process inherits. Nothing of a calibration can be gone on with:
    llm-compressor 0.14 keeps no state. Keep `merged` until this returns, and it is all that need not be repeated.
    Raises Stop: as `ready`, and DC261, DC264, DC273 …; then nothing is in `into` that was not there before.
    """
    python, lines, notes = ready(recipe, folder=folder, python=python)
    job = {**_job(recipe, merged, lines), "into": str(into.absolute()), "threads": threads}
    result = process.run(str(python), job, lock, progress, module=WORKER)
    return Calibrated(
        shards={name: Content(**content) for name, content in result["shards"].items()},
        quantization_config=result["quantization_config"],
        versions=result["versions"],
        torch=result["torch"],
        threads=result["threads"],
        seconds=result["seconds"],
        notes=notes,
    )


def _job(recipe: Recipe, merged: Merged, lines: Sequence[Line]) -> dict[str, Any]:
    text = recipe.calibration
    assert text is not None  # noqa: S101  # `ready` looked
    return {
        "model": str(merged.folder.absolute()),
        "source": merged.source,
        "shards": list(merged.shards),
        "method": method(recipe),
        "group_size": recipe.group_size,
        "strength": recipe.smoothquant,
        "quantized": {name: asdict(scheme) for name, scheme in merged.quantized.items()},
        "left_alone": list(merged.left_alone),
        "dtype": recipe.dtype,
        "text": {"shown": text.path, "tokens": text.tokens, "lines": [asdict(line) for line in lines]},
    }
