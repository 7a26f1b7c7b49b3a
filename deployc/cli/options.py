"""Options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Option("--file", "-f", help="The deploy.yaml.", show_default="deploy.yaml")]
Offline = Annotated[bool, typer.Option("--offline", help="Use only the lockfile and shipped data; look at no target.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Assume = Annotated[
    list[str] | None,
    typer.Option("--assume", metavar="KEY=VALUE", help="Read the model's config.json as if KEY had VALUE; repeatable."),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="Plain text; NO_COLOR in the environment does the same.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

DEFAULT_FILE = Path("deploy.yaml")
