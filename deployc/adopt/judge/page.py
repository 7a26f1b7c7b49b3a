"""Pages and scripts that talk to an engine: read as text, with care; strings and comments may hold anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from deployc.adopt.read.kind import Text
from deployc.diagnostics import Diagnostic, error
from deployc.source.lines import Lines

_SOURCE = re.compile(r"\bnew\s+EventSource\s*\(")
_SENDS = re.compile(r"\b(?:method|body|headers)\s*:")
_FAR = 2_000
"""Characters in which a call must end."""
_MOST = 200
"""Calls that are looked at: nobody writes more in one page."""


def judge_page(source: Text) -> list[Diagnostic]:
    """What every rule has to say of a page."""
    return list(posting_event_source(source.text, source.lines))


def posting_event_source(text: str, lines: Lines) -> Iterator[Diagnostic]:
    """`new EventSource(url, {method: 'POST', body})`: its only option is withCredentials, and it always GETs."""
    for found in islice(_SOURCE.finditer(text), _MOST):
        call = _arguments(text, found.end())
        sent = _SENDS.search(call)
        if sent is None or _commented(text, found.start()):
            continue
        line = text.count("\n", 0, found.start())
        column = found.start() - text.rfind("\n", 0, found.start()) - 1
        yield error(
            "DC735",
            "an EventSource cannot post",
            f"It knows the option withCredentials alone (WHATWG HTML, 9.2): {sent[0].rstrip(': ')} is left out, and "
            "the server gets a GET without a body.",
            "fetch(url, {method: 'POST', body}) and read response.body as a stream, or the openai client with stream: "
            "true on /v1/chat/completions",
            lines.span(line, column, column + len(found[0])),
        )


def _arguments(text: str, start: int) -> str:
    """What stands between the brackets of a call that opens before `start`."""
    depth, quote = 1, ""
    for index in range(start, min(len(text), start + _FAR)):
        character = text[index]
        if quote:
            quote = "" if character == quote and text[index - 1] != "\\" else quote
        elif character in "'\"`":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return text[start:index]
    return ""


def _commented(text: str, index: int) -> bool:
    line = text[text.rfind("\n", 0, index) + 1 : index]
    return bool(re.match(r"\s*(?://|\*|#)", line)) or text.rfind("/*", 0, index) > text.rfind("*/", 0, index)
