"""`deployc compile`: everything needed to serve, as files to read, keep and run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show


def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to; made where it is missing.")],
    file: options.File = options.DEFAULT_FILE,
    offline: options.Offline = False,
    assume: options.Assume = None,
    no_color: options.NoColor = False,
) -> int:
    """Write command.txt, Dockerfile, compose.yaml, the unit and manifest.json. Example: deployc compile -o out"""
    from deployc import pipeline
    from deployc.facts.assume import parsed

    analysis = pipeline.compile(file, offline=offline, assume=parsed(assume or ()))
    show.report(analysis.report, no_color=no_color)
    if analysis.bundle is None or analysis.exit_code:
        return analysis.exit_code
    for name, text in analysis.bundle.files.items():
        show.written(output / name, text)
    show.text(f"{output}: {len(analysis.bundle.files)} files, digest {analysis.bundle.digest}")
    return analysis.exit_code
