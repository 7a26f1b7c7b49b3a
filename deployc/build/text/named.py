"""The text files that a deploy.yaml names: read and checked when it is planned, so that a review sees what is wrong.

They lie beside the file and are read as it is, with and without a lockfile: what is pinned is their digest in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deployc.build.text.read import read_text
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Report
from deployc.emit.flags import is_template
from deployc.files import beside

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy


def named_texts(deploy: Deploy) -> tuple[dict[str, str], Report]:
    """Each file as deploy.yaml names it, with "sha256:…" of its whole content; DC261 and DC262 on their lines.

    What cannot be used has no digest.
    """
    digests: dict[str, str] = {}
    report = Report()
    for key, data, samples in _asked(deploy):
        path = beside(Path(deploy.folder), data)
        _, found = read_text(path, samples, data)
        for diagnostic in found:
            report.add(replace(diagnostic, at=deploy.at(f"quantization.{key}")))
        if not found.errors:
            digests[data] = f"sha256:{sha256(path)}"
    template = deploy.api.chat_template
    if template is not None and not is_template(template) and (path := beside(Path(deploy.folder), template)).is_file():
        digests[template] = f"sha256:{sha256(path)}"  # one that is not there is the launch's matter
    return digests, report


def _asked(deploy: Deploy) -> Iterator[tuple[str, str, int]]:
    """Where a text is named, the file, and how many lines of it are wanted."""
    calibration, quality = deploy.quantization.calibration, deploy.quantization.quality
    if calibration is not None:
        yield "calibration.data", calibration.data, calibration.samples
    if quality is not None and quality.data is not None:
        yield "quality.data", quality.data, quality.samples
