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
    version: Annotated[str | None, typer.Option("--version", help="The vLLM version, as in engine.version.")] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="The build that runs on the CPU.")] = False,
    quantizer: Annotated[
        bool, typer.Option("--quantizer", help="llm-compressor instead, for int4-gptq, int4-awq and smoothquant.")
    ] = False,
    path: Annotated[Path | None, typer.Option("--path", help="Where; default $XDG_DATA_HOME/deployc/engines/…")] = None,
) -> int:
    """Make the environment, or finish or find it. Example: deployc engine install --cpu --version 0.32.0"""
    import os

    from deployc.apply import engine_install
    from deployc.facts import nvml

    def say(line: str) -> None:
        typer.echo(line, err=True)

    if quantizer:
        on_cpu = cpu or nvml.count() == 0
        prefix, report = engine_install.install_quantizer(version, cpu=on_cpu, path=path, env=os.environ, say=say)
    elif version is None:
        raise typer.BadParameter("--version is needed, as in engine.version; or --quantizer.")
    else:
        prefix, report = engine_install.install(version, cpu=cpu, path=path, env=os.environ, say=say)
    show.report(report)
    show.text(str(prefix))
    return ExitCode.OK
