"""Options that several commands share, declared once so that they read the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

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


class Style(StrEnum):
    """How progress is shown; `auto` is a bar on a terminal and lines elsewhere."""

    AUTO = "auto"
    BAR = "bar"
    LINES = "lines"
    JSON = "json"
    NONE = "none"

    def on(self, stream: TextIO) -> Style:
        """What `auto` means for a stream."""
        if self is not Style.AUTO:
            return self
        return Style.BAR if stream.isatty() else Style.LINES


Progress = Annotated[
    Style, typer.Option("--progress", help="How progress is shown, on standard error; json is one object a line.")
]

DEFAULT_FILE = Path("deploy.yaml")
