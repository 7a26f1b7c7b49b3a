"""What is typed by accident: full-width punctuation, smart quotes, invisible characters, before YAML stumbles on it."""

from __future__ import annotations

import re

from deployc.diagnostics import Diagnostic, Report, Span, error

_MEANT = {
    "：": ":",
    "，": ",",
    "－": "-",
    "—": "-",
    "–": "-",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "＂": '"',
    "＇": "'",
    "　": " ",
    "\u00a0": " ",
    "\u200b": "",
    "\ufeff": "",
    "＃": "#",
    "｛": "{",
    "｝": "}",
    "［": "[",
    "］": "]",
}
_NAMES = {
    "　": "a full-width space",
    "\u00a0": "a no-break space",
    "\u200b": "a zero-width space",
    "\ufeff": "a byte-order mark",
}
_PLACES = (
    re.compile(r"^\s*(?:[-－–—]\s+)?[A-Za-z_][\w.-]*\s*(：)"),  # key：value
    re.compile(r"^[ \t]*([　\u00a0\u200b\ufeff])"),  # indentation
    re.compile(r"^\s*([－–—])\s"),  # － item
    re.compile(r"(?::|^\s*-)\s+([“”‘’＂＇])"),  # key: “value”
    re.compile(r"(?::|^\s*-)\s+([｛［])"),  # key: ｛a: 1｝
    re.compile(r"[\[{][^\"'#]*?([，：］｝])"),  # {a：1，b: 2}
    re.compile(r"^\s*(＃)"),
)
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def odd_characters(text: str, file: str) -> Report:
    """Diagnostics for control characters, and for look-alike punctuation where YAML's own must stand.

    Chinese text inside values and comments is nobody's business and is left alone.
    """
    report = Report()
    for number, line in enumerate(text.splitlines(), 1):
        if found := _FORBIDDEN.search(line):
            report.add(
                error(
                    "DC112",
                    "a control character stands in the file",
                    f"U+{ord(found[0]):04X}.",
                    "delete it",
                    _span(file, number, found.start(), line),
                )
            )
            continue
        bare = _without_comment(line)
        for pattern in _PLACES:
            if found := pattern.search(bare):
                report.add(_look_alike(found[1], _span(file, number, found.start(1), line)))
                break
    return report


def _look_alike(character: str, span: Span) -> Diagnostic:
    name = _NAMES.get(character, f"{character!r}")
    meant = _MEANT[character]
    typed = "a space" if meant == " " else f"{meant!r}" if meant else "nothing"
    return error(
        "DC113",
        "a look-alike character stands where YAML wants plain punctuation",
        f"{name} (U+{ord(character):04X}) is not what YAML reads here.",
        f"type {typed} in its place",
        span,
    )


def _without_comment(line: str) -> str:
    return re.split(r"(?:^|\s)#", line, maxsplit=1)[0]


def _span(file: str, line: int, column: int, excerpt: str) -> Span:
    return Span(file, line, column + 1, column + 2, re.sub(_FORBIDDEN, "\ufffd", excerpt))
