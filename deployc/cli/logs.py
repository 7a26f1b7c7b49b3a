"""`deployc logs`: what the engine printed, as it prints it where asked."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.cli.shaped import shaped
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the engine ends or Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.")] = 100,
    no_color: options.NoColor = False,
) -> int:
    """Print the engine's log, control characters escaped. Example: deployc logs --follow"""
    import os

    from deployc.apply import observe, state

    deploy = shaped(file, no_color=no_color)
    for line in observe.logs(state.locate(deploy, file.parent, os.environ), lines=lines, follow=follow):
        if not show.text(line):
            break
    return ExitCode.OK
