"""What a command loses on its way through a forum: look-alikes of punctuation, emoji, prompts, fences.

Every character is replaced by exactly one, so that places in the cleaned text are places in the text that was pasted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, note, warning
from deployc.source.lines import Lines

_ALIKE = {
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚", "'"),
    **{"。": ".", "、": ",", "【": "[", "】": "]", "…": " "},
}
_DASHES = "‐‑‒–—―−"
_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STARTS = r"(?:vllm|docker|podman|nerdctl|sudo|nohup|python3?|export|env|[A-Z][A-Z0-9_]*=)"
_USER = r"(?:\([\w.-]{1,40}\)[ \t]+)?[\w.-]{1,40}@[\w.-]{1,60}[^$#\n]{0,80}[$#]"
_BULLET = rf"(?:[-*•>]|\d{{1,2}}[.)])(?=[ \t]+{_STARTS})"
_ROOT = r"#(?=[ \t]+(?:vllm serve|docker run|python3? -m vllm))"
_PROMPT = re.compile(rf"^[ \t]*(?:{_USER}|[$%❯➜]|{_ROOT}|{_BULLET})(?:[ \t]+|$)", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_AFTER_BREAK = re.compile(r"\\[ \t]+(?:#[^\n]*)?$", re.MULTILINE)
_MOST = 20


def cleaned(text: str) -> str:
    """The text as it was meant, character for character: wide forms narrow, quotes plain, the rest of no use a space.

    A dash that stands for two (`—max-model-len`) becomes one; `words.py` reads one dash before a long name as two.
    """
    text = "".join(_plain(character) for character in text)
    for pattern in (_FENCE, _PROMPT):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    return text


def _plain(character: str) -> str:
    if character < "\x7f" and character not in "\r\x00" and (character >= " " or character in "\t\n"):
        return character
    if character in _ALIKE:
        return _ALIKE[character]
    if character in _DASHES:
        return "-"
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if character in "\u2028\u2029\x85":
        return "\n"
    if _HIDDEN.match(character) or unicodedata.category(character) in ("Zs", "So", "Cc", "Cf", "Cs"):
        return " "
    return character


def mended(text: str, lines: Lines) -> Iterator[Diagnostic]:
    """DC702 a line with look-alikes, DC703 a line whose backslash is followed by a space: neither runs as pasted."""
    found = 0
    for number, line in enumerate(text.split("\n")):
        alike = [i for i, c in enumerate(line) if c in _ALIKE or c in _DASHES or "\uff01" <= c <= "\uff5e"]
        if alike and not line.lstrip().startswith("#") and found < _MOST:
            found += 1
            shown = ", ".join(sorted({f"{line[i]} (U+{ord(line[i]):04X})" for i in alike}))
            yield note(
                "DC702",
                "look-alikes were read as plain punctuation",
                f"{shown}: a shell takes them as letters; the line does not run as it stands here.",
                "type them anew: - for a dash, \" or ' for a quote",
                lines.span(number, alike[0], alike[-1] + 1),
            )
        if (space := _AFTER_BREAK.search(line)) is not None:
            yield warning(
                "DC703",
                "a space stands behind the backslash",
                "To the shell this is an escaped space, not a line that goes on: what stands on the lines below is run "
                "as a command of its own. It was read as it was meant.",
                "delete the space behind the backslash",
                lines.span(number, space.start(), space.end()),
            )
