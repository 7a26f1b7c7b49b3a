"""What is typed by accident: control characters, and full-width or typographic look-alikes of YAML's punctuation.

Chinese text inside values and comments is nobody's business; only places where YAML wants punctuation are looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, error
from deployc.source.lines import Lines

_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff]"
)
_SPACES = "\u3000\u00a0\u2002\u2003\u2009"
_QUOTES = {"“": '"', "”": '"', "＂": '"', "„": '"', "‘": "'", "’": "'", "＇": "'"}
_DASHES = {"－": "-", "—": "-", "–": "-", "−": "-"}
_OPENING = {"｛": "{", "［": "[", "【": "["}
_IN_FLOW = {"，": ",", "、": ",", "：": ":", "｝": "}", "］": "]", "】": "]"}
MEANT = {**dict.fromkeys(_SPACES, " "), **_QUOTES, **_DASHES, **_OPENING, **_IN_FLOW, "＃": "#"}
_SUSPECT = re.compile(f"[{''.join(MEANT)}]")
_KEY = re.compile(r"(?:-[ \t]+)*[A-Za-z_][\w.-]*[ \t]*\Z", re.ASCII)
_NUMBERED = re.compile("＃[0-9A-Za-z]")
_ENTRY = re.compile(r"[^\]},:，、：｝］】]*")
_NEAR = 400  # characters to either side that decide what a look-alike is: bounds the work on a long line
_TYPED = {" ": "a plain space", ":": "a colon and a space"}
_MOST = 20  # a text with more of them than this is no slip of the keyboard


def forbidden(text: str, lines: Lines) -> Iterator[Diagnostic]:
    """DC112 for characters that no editor shows and no key needs, the first on each line."""
    last, start, number, found = -1, 0, 0, 0
    for match in _FORBIDDEN.finditer(text):
        number += len(re.findall(r"\r\n|\n|\r", text[start : match.start()]))
        start = match.start()
        if number == last:
            continue
        last, found = number, found + 1
        column = start - max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) - 1
        yield error(
            "DC112",
            "a control character stands in the file",
            f"U+{ord(match[0]):04X} ({_named(match[0])}) cannot be seen and has no place here.",
            "delete it",
            lines.span(number, column, column + 1),
        )
        if found == _MOST:
            return


def suspects(text: str) -> list[int]:
    """Where look-alikes stand in place of YAML's punctuation: indices into the text, by the look of each line alone."""
    if not _SUSPECT.search(text):
        return []
    found: list[int] = []
    start = 0
    for line in text.split("\n"):
        if _SUSPECT.search(line):
            found.extend(start + column for column in _in_line(line))
        start += len(line) + 1
    return found


def mended(text: str, indices: list[int]) -> str | None:
    """The text as it was meant, each look-alike replaced by the one character it stands for.

    None where that is not enough: a wide colon looks like a colon and a space, and both would have to be there.
    """
    characters = list(text)
    for index in indices:
        characters[index] = MEANT[characters[index]]
    colons = (index for index in indices if text[index] == "：")
    return None if any("".join(characters[i + 1 : i + 2]).strip(" \n") for i in colons) else "".join(characters)


def look_alikes(text: str, indices: list[int], lines: Lines) -> Iterator[Diagnostic]:
    """DC113 for each of them, up to a score."""
    for index in indices[:_MOST]:
        line, column = text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
        meant = MEANT[text[index]]
        yield error(
            "DC113",
            "a look-alike stands where YAML wants plain punctuation",
            f"{text[index]!r} is U+{ord(text[index]):04X}, {_named(text[index])}; YAML does not read it as "
            f"{'a space' if meant == ' ' else meant}.",
            f"type {_TYPED.get(meant, meant)} in its place, or put the whole text in quotes",
            lines.span(line, column, column + 1),
        )


def _in_line(line: str) -> Iterator[int]:
    """Columns of the look-alikes that stand for punctuation, in one pass."""
    closing, depth = "", 0
    begins = True  # nothing but indentation and list dashes so far
    value = True  # a key or a value may begin here
    for column, character in enumerate(line):
        meant = MEANT.get(character, character)
        before = line[column - 1] if column else " "
        if closing:
            if character in closing:
                closing = ""
                if character != meant:
                    yield column
            continue
        apart = begins or before == "\t" or before in " " + _SPACES
        if meant == "#" and apart and not _NUMBERED.match(line, column):
            if character != meant:
                yield column
            return
        if character != meant:
            if not _punctuates(character, line, column, begins, value, depth):
                value = begins = False
                continue
            yield column
        if meant in "\"'" and value:
            closing = character if character == meant else "".join(c for c, m in MEANT.items() if m == meant)
        depth += (meant in "[{" and value) - (meant in "]}" and depth > 0)
        listed = meant == "-" and begins
        value = (value and meant in " \t") or meant == ":" or listed or (depth > 0 and meant in ",[{")
        begins = begins and meant in " \t-"


def _punctuates(character: str, line: str, column: int, begins: bool, value: bool, depth: int) -> bool:
    """Whether a look-alike stands where YAML would want the character it looks like."""
    after = line[column + 1 : column + 2]
    if character in _SPACES:
        return value
    if character == "＃":
        return False
    if character in _DASHES:
        return begins and after in (" ", "\t", "")
    if character in _QUOTES:
        return value and not _goes_on(line, column)
    if character in _OPENING:
        return value
    if character == "：" and depth == 0:
        return bool(_KEY.match(line[:column].lstrip(" \t" + _SPACES)))
    return depth > 0 and _separates(character, line, column)


def _goes_on(line: str, column: int) -> bool:
    """Whether text follows the quoted words: “these” are part of a sentence, not its quotes."""
    alike = "".join(c for c, meant in _QUOTES.items() if meant == _QUOTES[line[column]]) + _QUOTES[line[column]]
    closing = re.compile(f"[{alike}]").search(line, column + 1, column + _NEAR)
    after = line[closing.end() : closing.end() + _NEAR].strip(" \t" + _SPACES) if closing else ""
    return bool(after) and after[0] not in ",:]}#，：、］｝】＃"


def _separates(character: str, line: str, column: int) -> bool:
    """Whether a look-alike inside brackets stands between entries; between words of a Chinese text it is theirs."""
    near = line[max(0, column - _NEAR) : column]
    begins = max(near.rfind(separator) for separator in "[{,:，、：") + 1
    before = near[begins:].strip()
    if character == "：":
        return bool(_KEY.match(before)) and near[begins - 1 : begins] != ":"
    if character in "｝］】":
        return before.isascii()
    after = _ENTRY.match(line, column + 1, column + _NEAR)
    return before.isascii() and (after is None or after[0].isascii())


def _named(character: str) -> str:
    return unicodedata.name(character, "a control character").lower()
