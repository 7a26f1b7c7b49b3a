"""The entry point: a table of commands, each module imported when its command is asked for."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deployc import __version__
from deployc.diagnostics import Diagnostic, ExitCode, Stop, error

COMMANDS = ("import", "validate", "lock", "plan", "tune", "compile", "build", "store", "apply", "status", "logs",
            "destroy", "doctor", "calibrate", "engine", "explain", "profiles", "schema")  # fmt: skip
"""In the order of the work; `deployc/cli/<name>.py` has the function `command`, or a typer `app` with subcommands."""

_MODULES = {"import": "importing"}  # words of Python cannot name a module

# Click's base for every wrong use of the command line, whichever copy of Click typer brings.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


class _LazyGroup(TyperGroup):
    """Imports a command's module only when that command runs, or when help lists them all."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"deployc.cli.{_MODULES.get(cmd_name, cmd_name)}")
        sub: typer.Typer | None = getattr(module, "app", None)
        if sub is None:
            sub = typer.Typer(add_completion=False, rich_markup_mode=None)
            sub.command(cmd_name, context_settings=getattr(module, "SETTINGS", None))(module.command)
        command = typer.main.get_command(sub)
        command.name = cmd_name
        return command


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"deployc {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Compile one reviewed deploy.yaml into a running vLLM; say what it costs before anything starts."""


def application() -> Any:
    """The command-line application, commands not yet imported."""
    app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_root)
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; prints, never raises for a user's mistake."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        result = application().main(args=words, prog_name="deployc", standalone_mode=False)
    except _ClickError as wrong:
        wrong.show()  # type: ignore[attr-defined]
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except Stop as stop:
        return _stopped(stop, json="--json" in words)
    except OSError as refused:  # a folder that cannot be looked into, a disk that is full
        return _stopped(Stop(_refusal(refused)), json="--json" in words)
    return result if isinstance(result, int) else ExitCode.OK


def _stopped(stop: Stop, *, json: bool) -> int:
    """Show why a command stopped: with --json as the one document on standard output."""
    from deployc.cli import show

    if json:
        from deployc.plan.document import partial_document

        show.json(partial_document(None, stop.report))
    else:
        show.report(stop.report)
    return stop.exit_code


def _refusal(failure: OSError) -> Diagnostic:
    detail = ": ".join(str(part) for part in (failure.filename, failure.strerror or failure) if part)
    fix = "give this user rights there, or make room; deploy.yaml can name other folders"
    return error("DC618", "the system refused a file or a folder", detail, fix)


def _encode() -> None:
    """What the terminal's encoding lacks is shown as "?", never an error; JSON is UTF-8 everywhere (RFC 8259)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
            if "--json" in sys.argv and stream is sys.stdout:
                stream.reconfigure(encoding="utf-8")


def _open() -> None:
    """A shell that closed a stream (`>&-`) has Python start without it: what is written there goes nowhere."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  (open as long as the process)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def main() -> None:
    """The console script."""
    _open()
    _encode()
    try:
        code = run()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    gc.freeze()  # else Python looks for rubbish once more among all that it is about to give back: a sixth of a plan
    sys.exit(code)
