"""A systemd service unit -> a `FoundLaunch` (systemd.syntax, systemd.service "Command lines")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from deployc.adopt.read.command import assigned, launch_of
from deployc.adopt.read.words import Places, commands
from deployc.source.lines import Lines
from deployc.types.launch import FoundLaunch, Piece

_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9]*)[ \t]*=[ \t]*")
_SECTION = re.compile(r"^[ \t]*\[(?:Service|Unit)\][ \t]*$", re.MULTILINE)
_PREFIX = "-@:+!"


def is_unit(text: str) -> bool:
    """Whether the text has the section of a service."""
    return "[Service]" in text and _SECTION.search(text) is not None


def launches(text: str, lines: Lines) -> Iterator[FoundLaunch]:
    """The launch in `ExecStart=`; a container that it runs keeps the unit's settings beside its own."""
    places = Places(text, lines)
    settings = list(_settings(text, places))
    last = {name: piece for name, piece, _ in settings if piece.value}
    variables: dict[str, Piece] = {}
    for name, _, words in settings:
        if name == "Environment":
            variables |= assigned(words)
    for name, piece, words in settings:
        started = [_unprefixed(words[0]), *words[1:]] if name == "ExecStart" and words else []
        if started and (launch := launch_of(started)) is not None:
            yield replace(
                launch,
                source="unit",
                at=piece.at,
                unit=last,
                env={**({} if launch.image else variables), **launch.env},
                env_files=(*launch.env_files, *(piece for name, piece, _ in settings if name == "EnvironmentFile")),
                user=launch.user or last.get("User"),
                restart=launch.restart or last.get("Restart"),
                grace=launch.grace or last.get("TimeoutStopSec") or last.get("TimeoutSec"),
            )


def _settings(text: str, places: Places) -> Iterator[tuple[str, Piece, list[Piece]]]:
    """Name, value and its words, in order; lines that end in a backslash are joined by a space."""
    index = 0
    while index < len(text):
        end = _line_end(text, index)
        line = text[index:end]
        if (found := _SETTING.match(line)) and line.lstrip()[:1] not in ("#", ";"):
            begin = index + found.end()
            value = re.sub(r"\\[ \t]*\n", " ", text[begin:end]).strip()
            first = text.find("\n", begin)
            piece = places.piece(value, begin, end if first < 0 else min(end, first))
            worded = found[1] in ("ExecStart", "Environment")
            yield found[1], piece, _words(text, begin, end, places) if worded else []
        index = end + 1


def _line_end(text: str, index: int) -> int:
    """Where the setting that begins here ends: the first line break without a backslash before it."""
    while True:
        end = text.find("\n", index)
        if end < 0:
            return len(text)
        if not text[index:end].rstrip(" \t").endswith("\\") or text[index:end].lstrip()[:1] in ("#", ";"):
            return end
        index = end + 1


def _words(text: str, begin: int, end: int, places: Places) -> list[Piece]:
    """The words of a command line or of `Environment=`: quotes as in a shell, `%%` and `$$` one each; no `;`, `|`."""
    found = commands(text, places, scripted=False, start=begin, end=end)
    return [Piece(word.value.replace("%%", "%").replace("$$", "$"), word.at) for command in found for word in command]


def _unprefixed(word: Piece) -> Piece:
    return Piece(word.value.lstrip(_PREFIX), word.at)
