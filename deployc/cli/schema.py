"""`deployc schema`: the JSON Schema of deploy.yaml, for editors and other checkers."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import show
from deployc.diagnostics import ExitCode


def command(
    write: Annotated[bool, typer.Option("--write", help="Write schemas/deploy.schema.json of this checkout.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail where the shipped file lags behind the models.")] = False,
) -> int:
    """Print the JSON Schema. Example: deployc schema > deploy.schema.json"""
    from deployc.data import schemas
    from deployc.spec.schema import json_schema

    path, text = schemas() / "deploy.schema.json", json_schema()
    if write:
        show.written(path, text)
    elif check:
        same = path.is_file() and path.read_text(encoding="utf-8") == text
        show.text(f"{path.name}: {'up to date' if same else 'lags behind the models; run `make schema`'}")
        return ExitCode.OK if same else ExitCode.FAILED
    else:
        show.text(text)
    return ExitCode.OK
