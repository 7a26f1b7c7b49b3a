"""Text as a terminal shows it: display width, wrapping, colour, and no control character of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import combining, east_asian_width

STYLES = {
    "error": "1;31", "warning": "1;33", "note": "1;36", "good": "32", "bad": "31", "doubt": "33",
    "strong": "1", "dim": "2", "place": "1;34",
}  # fmt: skip
TAB = 4
_NOT_FIRST = frozenset("，。、；：？！）》」』】〉…")
_NOT_LAST = frozenset("（《「『【〈")
"""Chinese punctuation that begins no line, and such that ends none."""
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that reorder what is shown: a source line with one of them reads as something that it is not."""


def paint(text: str, style: str, color: bool) -> str:
    """The text in a style of `STYLES`, as ANSI SGR; unchanged without colour."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color and text else text


def escape(text: str) -> str:
    """Control characters and direction marks as `\\x1b` or `\\u202e`; line breaks and tabs too."""
    if text.isprintable() and not _DIRECTION & set(text):
        return text
    return "".join(_visible(character) for character in text)


def expand_tabs(text: str) -> str:
    """Tabs to the next multiple of four columns, by display width; everything else escaped."""
    out, column = [], 0
    for character in text:
        shown = " " * (TAB - column % TAB) if character == "\t" else escape(character)
        out.append(shown)
        column += width(shown)
    return "".join(out)


def width(text: str) -> int:
    """Columns of a terminal: two for wide and full-width characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def pad(text: str, columns: int) -> str:
    """The text filled up with spaces on the right to a display width."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """The text cut to a display width, with `…` where something was left out."""
    if width(text) <= columns:
        return text
    out, used = "", 0
    for character in text:
        if used + _columns(character) > columns - 1:
            break
        out, used = out + character, used + _columns(character)
    return out + "…"


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most `columns` that begin with `first`, then `rest` (default: as many spaces). Breaks at spaces and
    between wide characters; a longer word is broken where the line ends. Line breaks of the text are kept."""
    rest = " " * width(first) if rest is None else rest
    columns = max(columns, width(first) + 2, width(rest) + 2)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, empty = (rest if lines else first), True
        for piece in _pieces(escape(paragraph)):
            left = piece
            while width(line + left.rstrip()) > columns:
                if empty:  # a single piece that is wider than a line
                    head = _fitting(left, columns - width(line))
                    line, left = line + head, left[len(head) :]
                lines.append(line.rstrip())
                line, empty, left = rest, True, left.lstrip()
            line += left
            empty = empty and not left
        lines.append(line.rstrip())
    return lines


def joined(lines: Iterable[str]) -> str:
    """Lines of a paragraph as one: with a space between words, with none between wide characters, which have none."""
    text = ""
    for line in lines:
        beside = text[-1:] + line[:1]
        apart = text and not all(map(_wide, beside)) and not (_NOT_FIRST | _NOT_LAST) & set(beside)
        text += f" {line}" if apart else line
    return text


def _pieces(text: str) -> list[str]:
    """What may not be broken, spaces at its end: words, and single wide characters with their punctuation."""
    pieces: list[str] = []
    for character in text:
        if pieces and (character == " " or _glued(pieces[-1][-1], character)):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _glued(before: str, character: str) -> bool:
    """Whether no line may end between these two."""
    if before == " ":
        return False
    return character in _NOT_FIRST or before in _NOT_LAST or not (_wide(before) or _wide(character))


def _fitting(text: str, columns: int) -> str:
    taken, used = "", 0
    for character in text:
        if taken and used + _columns(character) > columns:
            break
        taken, used = taken + character, used + _columns(character)
    return taken


def _columns(character: str) -> int:
    return 2 if _wide(character) else 0 if combining(character) or character in "\u200b\u200c\u200d" else 1


def _wide(character: str) -> bool:
    return east_asian_width(character) in "WF"


def _visible(character: str) -> str:
    if character.isprintable() and character not in _DIRECTION:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
