"""Words behind the program -> model and flags, as that version's own parser takes them apart.

argparse: `--flag value`, `--flag=value`, a switch alone, a list up to the next flag; `-tp 4` and `-O3`; a long name cut
short where only one begins so (vllm/utils/argparse_utils.py of 0.33.0 changes none of that).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deployc.types.facts import Flag
from deployc.types.launch import FoundFlag, Piece

Known = Callable[[str], Flag | None]
"""A flag by name or alias, of the version at hand, else of another one: what went still takes its value along."""

_NUMBER = re.compile(r"-(?:\d+|\d*\.\d+)\Z")
_LEVEL = re.compile(r"-O(\d)\Z")
_ASKS = ("help", "h", "version")
"""Not how anything is started, but how to ask."""
_AND_SO_ON = ("...", "…", "[...]")
_LOOSE_DASH = re.compile(r"-(?=[A-Za-z][\w-]{3,})")


@dataclass(slots=True)
class Arguments:
    """What was found. `stray` words belong to no flag; the first of them is the model where the program takes one."""

    flags: list[FoundFlag] = field(default_factory=list)
    stray: list[Piece] = field(default_factory=list)


def arguments(words: Sequence[Piece], known: Known) -> Arguments:
    """Take the words apart. Redirections end them: what follows is the shell's."""
    found, index = Arguments(), 0
    words = [word for word in _until_redirection(words) if word.value not in _AND_SO_ON]
    while index < len(words):
        word = words[index]
        if not _is_flag(word.value):
            found.stray.append(word)
            index += 1
            continue
        written, equals, value = _name(word.value, known)
        index += 1
        if _key(written) in _ASKS:
            continue
        if equals:
            found.flags.append(FoundFlag(written, value, word.at))
            continue
        values = _values(words[index:], known(_key(written)))
        index += len(values)
        texts = [piece.value for piece in values]
        flag = known(_key(written))
        several = flag is not None and flag.type == "list"
        found.flags.append(FoundFlag(written, texts if several and texts else texts[0] if texts else True, word.at))
    return found


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-")[:1].isalpha() and not _NUMBER.match(word)


def _name(word: str, known: Known) -> tuple[str, bool, str]:
    """The flag as written, whether a value hangs on it, and that value."""
    if level := _LEVEL.match(word):
        return "-O", True, level[1]
    written, equals, value = word.partition("=")
    if not written.startswith("--") and known(_key(written)) is None and _LOOSE_DASH.match(written):
        written = "-" + written  # a long dash of a word processor stood for two
    if written.startswith("---"):
        written = "--" + written.lstrip("-")
    return written, bool(equals), value


def _key(written: str) -> str:
    """The name by which a catalogue has it: what follows a dot is a key inside its value."""
    name = written.lstrip("-").partition(".")[0]
    return name.replace("_", "-") if written.startswith("--") else name


def _values(words: Sequence[Piece], flag: Flag | None) -> list[Piece]:
    """The words that a flag takes: none for a switch, all up to the next flag for a list, else one."""
    free = 0
    while free < len(words) and not _is_flag(words[free].value):
        free += 1
    if flag is not None and flag.type == "bool":
        return []
    return list(words[: free if flag is not None and flag.type == "list" else min(1, free)])


def _until_redirection(words: Sequence[Piece]) -> Sequence[Piece]:
    for index, word in enumerate(words):
        if re.match(r"(?:\d|&)?>{1,2}|<(?![A-Za-z])", word.value):
            return words[:index]
    return words
