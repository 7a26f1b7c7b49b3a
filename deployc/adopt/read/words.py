"""Text -> commands of words, as a POSIX shell splits them, each word with its place. Nothing is expanded or run."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from deployc.source.lines import Lines
from deployc.types.launch import Piece

_GOES_ON = re.compile(r"[\\^`](?:[ \t]*|[ \t]+#[^\n]*)(?:\n|\Z)")
_BLANK = re.compile(r"[ \t\n]+")
_FLAG = re.compile(r"--?[A-Za-z]")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w ,./|:-]{0,80}>")
"""`<your model>`: one word, though a shell would read a file."""
_FAR = 2_000
"""Characters in which `$(` must find its end."""
MOST_WORDS = 4_000


class Places:
    """Index of the text -> span."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.lines = lines
        self.starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self.end = len(text)

    def piece(self, value: str, start: int, end: int) -> Piece:
        """A word that stands at [start, end) of the text."""
        line = _line(self.starts, start)
        column = start - self.starts[line]
        stop = end - self.starts[line] if _line(self.starts, max(start, end - 1)) == line else None
        return Piece(value, self.lines.span(line, column, stop))


def _line(starts: list[int], index: int) -> int:
    return bisect_right(starts, index) - 1


@dataclass(slots=True)
class Word:
    """A word while it is read; `None` = between words."""

    text: list[str] = field(default_factory=list)
    start: int = 0


def commands(
    text: str, places: Places, *, scripted: bool = True, start: int = 0, end: int | None = None
) -> list[list[Piece]]:
    """The commands of [start, end) of a text, split at line ends, `;`, `&&`, `||`, `|` and `&`, comments left out.

    A line that begins with a flag goes on with the command above, backslash or not: no command begins with a dash.
    A quote without its end takes the rest of its line. Not `scripted`: one command, in which those are plain words, as
    compose and systemd read it.
    """
    found: list[list[Piece]] = [[]]
    word: Word | None = None
    index, end = start, len(text) if end is None else end

    def close(at: int) -> None:
        nonlocal word
        if word is not None:
            found[-1].append(places.piece("".join(word.text), word.start, at))
            word = None

    while index < end:
        character = text[index]
        if on := _GOES_ON.match(text, index) or _BLANK.match(text, index):
            close(index)
            broken = "\n" in on[0] and on[0][0] in " \t\n" and not _FLAG.match(text, on.end())
            if scripted and broken and found[-1]:
                found.append([])
            index = on.end()
        elif scripted and character in ";&|":
            close(index)
            if found[-1]:
                found.append([])
            index += 1
        elif scripted and character == "#" and word is None:
            stop = text.find("\n", index)
            index = end if stop < 0 else stop
        else:
            word = word or Word(start=index)
            taken, index = _next(text, index)
            word.text.append(taken)
    close(min(index, end))
    return [command[:MOST_WORDS] for command in found if command]


def _next(text: str, index: int) -> tuple[str, int]:
    """What one character, escape or quoted stretch adds to a word, and where the text goes on."""
    character = text[index]
    if character == "\\":
        return text[index + 1 : index + 2], index + 2
    if character == "'":
        stop = _closing(text, index, "'")
        return text[index + 1 : stop], stop + 1
    if character == '"':
        stop = _closing(text, index, '"')
        return re.sub(r'\\([\\"$`])|\\\n', lambda m: m[1] or "", text[index + 1 : stop]), stop + 1
    if text.startswith("$'", index):
        stop = _closing(text, index + 1, "'")
        return text[index + 2 : stop], stop + 1
    if character == "<" and (blank := _PLACEHOLDER.match(text, index)):
        return blank[0], blank.end()
    if text.startswith("$(", index):
        stop = text.find(")", index, index + _FAR)
        stop = index + 1 if stop < 0 else stop
        return text[index : stop + 1], stop + 1
    return character, index + 1


def _closing(text: str, index: int, quote: str) -> int:
    """Where a quote closes; the end of its line where it never does."""
    at = index + 1
    while at < len(text):
        if text[at] == "\\" and quote == '"':
            at += 2
            continue
        if text[at] == quote:
            return at
        at += 1
    line = text.find("\n", index)
    return len(text) if line < 0 else line


def split(piece: Piece) -> list[Piece]:
    """The words of a text that stands in one place (`command: "…"` of a compose file): all of them are there."""
    return [word for command in _all_at(piece, scripted=False) for word in command]


def script(piece: Piece) -> list[list[Piece]]:
    """The commands of a text that a shell takes apart (`sh -c "…"`)."""
    return _all_at(piece, scripted=True)


def _all_at(piece: Piece, *, scripted: bool) -> list[list[Piece]]:
    found = commands(piece.value, Places(piece.value, Lines(piece.value, piece.at.file)), scripted=scripted)
    return [[Piece(word.value, piece.at) for word in command] for command in found]
