"""A Dockerfile -> a `FoundLaunch` of its last stage: base image, variables, entrypoint and command as they run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from deployc.adopt.read.docker_run import environment
from deployc.adopt.read.program import installed, runs_vllm
from deployc.adopt.read.words import Places, split
from deployc.source.lines import Lines
from deployc.types.launch import FoundLaunch, Health, Piece

_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+")
_FROM = re.compile(r"(?:^|\n)[ \t]*FROM[ \t]+\S", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_OPTION = re.compile(r"--([a-z-]+)=(\S+)[ \t]+")


def is_dockerfile(text: str) -> bool:
    """Whether it begins, behind comments and ARG, with FROM."""
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#") and not re.match(r"[ \t]*ARG[ \t]", line, re.IGNORECASE):
            return bool(_FROM.match(line))
    return False


def launches(text: str, lines: Lines) -> Iterator[FoundLaunch]:
    """The launch of the last stage, where base image or command name vLLM."""
    stage: dict[str, Piece] = {}
    variables: dict[str, Piece] = {}
    build: dict[str, Piece] = {}
    runs: list[Piece] = []
    for name, piece in instructions(text, Places(text, lines)):
        if name == "FROM":
            stage = {"image": Piece(_put_in(_base(piece.value), build), piece.at)}
            variables = {}
        elif name == "ENV":
            variables |= _variables(piece)
        elif name == "ARG":
            build |= {n.partition("=")[0].strip(): Piece(n.partition("=")[2], piece.at) for n in piece.value.split()}
        elif name == "RUN":
            runs.append(piece)
        elif name in ("ENTRYPOINT", "CMD", "USER", "HEALTHCHECK"):
            stage[name] = piece
    run = [piece for name, piece in stage.items() if name != "image"]
    if "image" in stage and runs_vllm(stage["image"].value, [*run, *runs]):
        yield replace(_launch(stage, variables, build), version=installed(text))


def _launch(stage: dict[str, Piece], variables: dict[str, Piece], build: dict[str, Piece]) -> FoundLaunch:
    entrypoint, command = stage.get("ENTRYPOINT"), stage.get("CMD")
    run = [piece for piece in (entrypoint, command) if piece is not None]
    shell = next((piece for piece in run if exec_form(piece) is None), None)
    return FoundLaunch(
        source="dockerfile",
        at=stage["image"].at,
        image=stage["image"],
        entrypoint=tuple(_words(entrypoint)) if entrypoint else None,
        arguments=tuple(_words(command)) if command else (),
        shell=shell,
        env=variables,
        build_args=build,
        user=stage.get("USER"),
        health=_health(stage["HEALTHCHECK"]) if "HEALTHCHECK" in stage else None,
    )


def instructions(text: str, places: Places) -> Iterator[tuple[str, Piece]]:
    """Instruction in capitals and its text, lines joined where they end in a backslash, comments between left out."""
    begin, name, parts = 0, "", list[str]()
    for start, whole in _lines(text):
        line = whole
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not name:
            found = _INSTRUCTION.match(line)
            if found is None:
                continue
            name, begin, line = found[1].upper(), start + found.end(), line[found.end() :]
        goes_on = line.rstrip().endswith("\\")
        parts.append(line.rstrip().removesuffix("\\") if goes_on else line)
        if not goes_on:
            yield name, places.piece(" ".join(parts).strip(), begin, begin + len(parts[0].rstrip()))
            name, parts = "", []
    if name:
        yield name, places.piece(" ".join(parts).strip(), begin, begin + len(parts[0].rstrip()) if parts else begin)


def exec_form(piece: Piece) -> list[str] | None:
    """The words of a JSON array; None for anything else, which Docker hands to `/bin/sh -c`."""
    try:
        read = json.loads(piece.value)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, list) and all(isinstance(word, str) for word in read) else None


def _words(piece: Piece) -> list[Piece]:
    words = exec_form(piece)
    return split(piece) if words is None else [Piece(word, piece.at) for word in words]


def _variables(piece: Piece) -> dict[str, Piece]:
    """`ENV A=1 B=2`, or the old `ENV A 1`."""
    words = split(piece)
    if words and "=" not in words[0].value:
        name, _, value = piece.value.partition(" ")
        return {name: Piece(value.strip(), piece.at)}
    return environment(words)


def _put_in(text: str, build: Mapping[str, Piece]) -> str:
    """`${NAME}` and `$NAME` by the default of an ARG; others stay as they are."""
    return _VARIABLE.sub(lambda m: build[m[1]].value if m[1] in build and build[m[1]].value else m[0], text)


def _base(text: str) -> str:
    return next((word for word in text.split() if not word.startswith("--")), "")


def _health(piece: Piece) -> Health | None:
    options, text = {}, piece.value
    while found := _OPTION.match(text):
        options[found[1]] = Piece(found[2], piece.at)
        text = text[found.end() :]
    if not text.upper().startswith("CMD"):
        return None
    command = Piece(text[3:].strip(), piece.at)
    words = exec_form(command)
    run = ("CMD", *words) if words is not None else ("CMD-SHELL", command.value)
    return Health(run, piece.at, options.get("start-period"), options.get("interval"), options.get("retries"))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1
