"""`deployc validate`: shape, and the rules that need no facts of model, card or engine."""

from __future__ import annotations

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE, json: options.Json = False, no_color: options.NoColor = False
) -> int:
    """Check the shape of a deploy.yaml. Example: deployc validate -f deploy.yaml"""
    from deployc import pipeline

    analysis = pipeline.shape(file)
    if json:
        from deployc.plan.document import partial_document

        show.json(partial_document(analysis.deploy.name if analysis.deploy else None, analysis.report))
        return analysis.exit_code
    show.report(analysis.report, no_color=no_color)
    if analysis.exit_code == ExitCode.OK:
        show.text(f"{file}: the shape is right; `deployc plan -f {file}` says what it costs")
    return analysis.exit_code
