"""`deployc destroy`: takes the deployment down on this host."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.cli.asking import agreed
from deployc.cli.shaped import shaped
from deployc.diagnostics import ExitCode


def command(
    file: options.File = options.DEFAULT_FILE,
    purge: Annotated[bool, typer.Option("--purge", help="Remove history, logs and cache as well.")] = False,
    yes: options.Yes = False,
    no_color: options.NoColor = False,
) -> int:
    """Stop what runs and forget its secrets; history and logs stay. Example: deployc destroy --yes"""
    import os

    from deployc.apply import destroy, observe, state

    deploy = shaped(file, no_color=no_color)
    name, place = deploy.name, state.locate(deploy, file.parent, os.environ)
    if not yes:
        runs = observe.status(place)
        what = f"{name} ({runs.condition}{f', {runs.url}' if runs.url else ''})"
        question = f"Take down {what}{' and remove all that is kept of it' if purge else ''}?"
        if not agreed(question):
            show.text(f"{name}: left as it is; --yes does not ask")
            return ExitCode.INTERRUPTED
    stopped = destroy.destroy(place, purge=purge)
    show.text(f"{name}: stopped {stopped.entry}" if stopped else f"{name}: nothing was running")
    return ExitCode.OK
