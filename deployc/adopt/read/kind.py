"""What kind of text it is, and its launches by the reader of that kind."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

from deployc.adopt.read import command, compose, config_file, dockerfile, paste, program, snippet, unit
from deployc.adopt.read.words import Places, commands
from deployc.adopt.read.yaml_root import yaml_root
from deployc.diagnostics import Diagnostic, Report, error
from deployc.source.lines import Lines
from deployc.source.tree import Map
from deployc.types.launch import FoundLaunch, Piece

Kind = Literal["command", "compose", "unit", "dockerfile", "config", "python", "page"]
MOST = 50
"""Launches of one text that are looked at."""
_PAGES = (".js", ".mjs", ".ts", ".tsx", ".jsx", ".html", ".htm", ".vue", ".svelte")


@dataclass(slots=True)
class Text:
    """One text, what kind it is, the launches in it and what its reader had to say."""

    text: str
    lines: Lines
    kind: Kind
    launches: list[FoundLaunch] = field(default_factory=list)
    module: ast.Module | None = None
    report: Report = field(default_factory=Report)

    @property
    def about_an_engine(self) -> bool:
        """Whether it is code around an engine: it has something to be judged though it may start none."""
        return self.kind == "page" or (self.module is not None and "vllm" in self.text.lower())


def read(text: str, name: str) -> Text:
    """Read a text. DC700: nothing in it starts a vLLM; DC701: another server's command."""
    text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)  # of bytes that were no UTF-8
    lines = Lines(text, name)
    found = Text(text, lines, kind(text, name))
    if found.kind == "python":
        found.module = snippet.tree(text)
        if found.module is not None:
            found.launches = _first(snippet.launches(found.module, snippet.Nodes(text, lines)))
    elif found.kind == "unit":
        found.launches = _first(unit.launches(text, lines))
    elif found.kind == "dockerfile":
        found.launches = _first(dockerfile.launches(text, lines))
    elif found.kind in ("compose", "config"):
        root = yaml_root(text, lines, found.report)
        reader = compose.launches if found.kind == "compose" else config_file.launches
        found.launches = _first(reader(root)) if root is not None else []
    elif found.kind == "command":
        _read_command(found)
    if not found.launches and not found.report.errors and not found.about_an_engine:
        found.report.add(_nothing(found))
    return found


def _first(launches: Iterable[FoundLaunch]) -> list[FoundLaunch]:
    return list(islice(launches, MOST))


def _read_command(found: Text) -> None:
    clean = paste.cleaned(found.text)
    split = commands(clean, Places(clean, found.lines))
    version = program.installed(found.text)
    found.launches = [replace(launch, version=version) for launch in _first(command.launches(split))]
    if found.launches:
        found.report.extend(paste.mended(found.text, found.lines))
    elif name := next((name for words in split if (name := program.other_server(words))), ""):
        found.report.add(_another(name, split))


def kind(text: str, name: str) -> Kind:
    """By the name where it says so, else by the look of the text."""
    last = name.rpartition("/")[2].lower()
    if last.endswith(_PAGES):
        return "page"
    if last.endswith(".service") or unit.is_unit(text):
        return "unit"
    if last.endswith(".py"):
        return "python"
    named = last.startswith(("dockerfile", "containerfile")) or last.endswith(".dockerfile")
    if named or dockerfile.is_dockerfile(text):
        return "dockerfile"
    if last.endswith((".yaml", ".yml")):
        return _yaml_kind(text, name) or "compose"
    clean = paste.cleaned(text)
    if any(command.launches(commands(clean, Places(clean, Lines(clean, name))))):
        return "command"
    module = snippet.tree(text)
    if module is not None and any(snippet.launches(module, snippet.Nodes(text, Lines(text, name)))):
        return "python"
    return _yaml_kind(text, name) or "command"


def _yaml_kind(text: str, name: str) -> Kind | None:
    root = yaml_root(text, Lines(text, name), Report())
    if root is None:
        return None
    if isinstance(root.entries.get("services"), Map):
        return "compose"
    return "config" if config_file.is_config(root) else None


def _nothing(found: Text) -> Diagnostic:
    kinds = {
        "compose": "no service names vLLM in its image, command or entrypoint",
        "unit": "no ExecStart= starts vLLM or a container with it",
        "dockerfile": "its last stage does not run vLLM",
        "config": "it is no YAML map of flags",
        "python": "it is no Python that can be read, or has nothing to do with vLLM",
    }
    return error(
        "DC700",
        "nothing here starts a vLLM",
        f"{found.lines.file}: {kinds.get(found.kind, 'no command in it is `vllm serve`, its module, or a container')}.",
        "hand in `vllm serve …`, `docker run … vllm/vllm-openai …`, a compose file, a unit, a Dockerfile, the YAML of "
        "--config, or Python with LLM(…) or EngineArgs(…)",
        found.lines.span(0, 0),
    )


def _another(name: str, split: Sequence[Sequence[Piece]]) -> Diagnostic:
    at = next(words[0].at for words in split if program.other_server(words))
    return error(
        "DC701",
        "this starts another server than vLLM",
        f"It is the command of {name}; its flags are not vLLM's, and none is guessed.",
        "write a deploy.yaml for the same model, card and load: vLLM's own flags are then chosen",
        at,
    )
