"""A command line -> `FoundLaunch`es, each with the words for the engine; and what of a text is no launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from deployc.adopt.read.docker_run import docker_run
from deployc.adopt.read.program import CONTAINERS, base, program, shell_text
from deployc.adopt.read.words import script
from deployc.types.launch import FoundLaunch, Piece

_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def launches(commands: Sequence[Sequence[Piece]]) -> Iterator[FoundLaunch]:
    """One for each command that starts an engine, with the variables that commands above it exported."""
    exported: dict[str, Piece] = {}
    for words in commands:
        launch = launch_of(words)
        if launch is not None:
            yield launch if launch.image else replace(launch, env={**exported, **launch.env})
        elif words[0].value == "export" or all(_ASSIGNS.match(word.value) for word in words):
            exported |= assigned(words)


def launch_of(words: Sequence[Piece]) -> FoundLaunch | None:
    """The launch of one command: a container's, or that of a program behind `sudo`, `nohup`, `env`, `numactl` …"""
    for index, word in enumerate(words[:-1]):
        if base(word.value) in CONTAINERS and words[index + 1].value in ("run", "create"):
            return docker_run(words[index + 2 :])
        if base(word.value) in CONTAINERS and words[index + 1].value == "container":
            return docker_run(words[index + 3 :])
    if (text := shell_text(words)) is not None and (inner := next(launches(script(text)), None)) is not None:
        return replace(inner, shell=text, env={**assigned(words), **inner.env})
    found = program(words)
    if found is None:
        return None
    start, end = found
    return FoundLaunch(
        source="command",
        at=words[start].at,
        program=tuple(words[start:end]),
        arguments=tuple(words[end:]),
        env=assigned(words[:start]),
    )


def assigned(words: Sequence[Piece]) -> dict[str, Piece]:
    """The variables that words in front of a program set."""
    return {found[1]: Piece(found[2], word.at) for word in words if (found := _ASSIGNS.match(word.value))}
