"""`deployc engine install`: an engine environment apart from the tool's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import show
from deployc.diagnostics import ExitCode

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def engine() -> None:
    """Engine environments of this host."""


@app.command()
def install(
    version: Annotated[str, typer.Option("--version", help="The vLLM version, as in engine.version.")],
    cpu: Annotated[bool, typer.Option("--cpu", help="The build that runs on the CPU.")] = False,
    path: Annotated[Path | None, typer.Option("--path", help="Where; default $XDG_DATA_HOME/deployc/engines/…")] = None,
) -> int:
    """Make the environment, or finish or find it. Example: deployc engine install --cpu --version 0.32.0"""
    import os

    from deployc.apply import engine_install

    prefix, report = engine_install.install(
        version, cpu=cpu, path=path, env=os.environ, say=lambda t: typer.echo(t, err=True)
    )
    show.report(report)
    show.text(str(prefix))
    return ExitCode.OK
