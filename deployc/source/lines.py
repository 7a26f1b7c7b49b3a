"""The lines of one file, as spans quote them: broken as YAML breaks them, secrets masked, nothing unprintable."""

from __future__ import annotations

import re

from deployc.diagnostics import Span
from deployc.source.secrets import masked

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]")
_LONGEST = 1000


class Lines:
    """Makes the spans of a file. Lines and columns go in as parsers count, from 0, and come out as editors do."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._lines = _BREAK.split(text)
        self._shown: dict[int, str] = {}

    def span(self, line: int, column: int, end: int | None = None) -> Span:
        """Columns [column, end) of a line; to the end of the line where `end` is None; at least one wide."""
        text = self._lines[line] if line < len(self._lines) else ""
        stop = len(text.rstrip()) if end is None else end
        return Span(self.file, line + 1, column + 1, max(stop, column + 1) + 1, self._excerpt(line, text))

    def _excerpt(self, line: int, text: str) -> str:
        if line not in self._shown:
            self._shown[line] = masked(_UNSHOWN.sub("\ufffd", text)) if len(text) <= _LONGEST else ""
        return self._shown[line]
