"""`deployc import`: what runs today, as a deploy.yaml, and what is wrong with it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import Diagnostic, Report

SETTINGS = {"ignore_unknown_options": True}
"""The words of a command have flags of their own, which are not ours. Short options of ours would be looked for inside
them (`-v/data:…`): -o is told apart by hand."""
COMMAND, INPUT = "command", "standard input"
MOST_WORDS = 4_000

Words = Annotated[
    list[str],
    typer.Argument(help="A file, `-` for standard input, or the command itself; and -o FILE to write the deploy.yaml."),
]
Version = Annotated[
    str | None, typer.Option("--engine-version", help="The vLLM that it runs, where the image's tag does not say.")
]
Gpu = Annotated[str | None, typer.Option("--gpu", help="The card, e.g. rtx-4090: a command line does not say.")]


def command(
    words: Words,
    json: options.Json = False,
    engine_version: Version = None,
    gpu: Gpu = None,
    no_color: options.NoColor = False,
) -> int:
    """Read what starts a vLLM today; nothing of it is run. Example: deployc import docker run … vllm/vllm-openai …

    FILE is a compose file, a systemd unit, a Dockerfile, the YAML of --config, a script, or Python with LLM(…).
    """
    from deployc.adopt.imported import Imported, imported

    words, output = _told_apart(words)
    source = _source(words)
    if isinstance(source, Diagnostic):
        found = Imported(report=Report([source]), unread=True)
    else:
        found = imported(*source, engine_version=engine_version, gpu=gpu)
    deploy_yaml = found.files[0] if found.files else None
    if output is not None and deploy_yaml is not None:
        show.written(output, deploy_yaml, keep=[Path(words[0])] if len(words) == 1 else [])
    if json:
        from deployc.plan.document import FORMAT_VERSION, diagnostics

        listed = diagnostics(found.report)
        show.json({"format_version": FORMAT_VERSION, "deploy_yaml": deploy_yaml, "diagnostics": listed})
        return found.exit_code
    show.report(found.report, no_color=no_color)
    if deploy_yaml is not None:
        show.text(f"wrote {output}; `deployc plan -f {output}` says what it costs" if output else deploy_yaml)
    return found.exit_code


def _told_apart(words: list[str]) -> tuple[list[str], Path | None]:
    """The words without `-o FILE`, and FILE."""
    if "-o" not in words:
        return words, None
    at = words.index("-o")
    if at + 1 == len(words) or len(words) == 2:
        raise typer.BadParameter("-o takes the name of a file, beside what is read")
    return words[:at] + words[at + 2 :], Path(words[at + 1])


def _source(words: list[str]) -> tuple[str, str] | Diagnostic:
    """The text and the name it is shown under, or why a file cannot be read."""
    from deployc.source.text import MAX_BYTES, read

    if words == ["-"]:
        return sys.stdin.read(MAX_BYTES), INPUT
    if len(words) == 1 and (Path(words[0][:255]).is_file() or not any(blank in words[0] for blank in " \n")):
        text = read(Path(words[0]), words[0], None)
        return text if isinstance(text, Diagnostic) else (text[0], words[0])
    if len(words) == 1:
        return words[0], COMMAND
    return shlex.join(words[:MOST_WORDS]), COMMAND
