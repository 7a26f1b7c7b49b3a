"""What a log gives away: keys and tokens, masked wherever it is shown; each character becomes an asterisk."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deployc.source.secrets import masked

_KEY = r"(?:api[-_]?keys?|hf[-_]?token|access[-_]?token|auth[-_]?token|password|secret[\w-]{0,20})"
_LISTED = re.compile(rf"(?i){_KEY}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\[(](?P<value>[^\])]{{1,2000}})")
_OPTION = re.compile(rf"(?i)--{_KEY}(?:=|\s{{1,8}})(?P<value>[^\s\[-]\S{{0,300}}(?:\s(?![-\[])\S{{1,300}}){{0,8}})")
_BEARER = re.compile(
    r"(?i)(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic)|\bbearer(?=\s{1,4}[\w.~+/=-]{0,200}\d))"
    r"\s{1,4}(?P<value>[\w.~+/=-]{6,2000})"
)
_SET = re.compile(rf"(?i){_KEY}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"'](?P<value>[^\"']{{1,2000}})")
_BARE = re.compile(rf"(?i){_KEY}=(?P<value>[^\s\"',()\[\]{{}}]{{4,2000}})")
_WORD = re.compile(r"[^\s,\"'\[\]()]{4,}")
_NONE = frozenset({"None", "null", "True", "False", "REDACTED", "API_KEY", "HF_TOKEN"})
"""Words that stand for no secret, as in the usage that argparse prints."""


def secrets(line: str) -> set[str]:
    """Those that a line spells out, as texts of four characters or more; not what the engine itself has masked."""
    found = (shape.finditer(line) for shape in (_LISTED, _OPTION, _BEARER, _SET, _BARE))
    words = {word for each in found for one in each for word in _WORD.findall(one["value"])}
    return {word for word in words if word not in _NONE and "**" not in word and not word.startswith(("$", "--"))}


def hidden(line: str, known: Iterable[str] = ()) -> str:
    """The line as it may be shown; `known` are secrets that other lines spell out, the longest first."""
    for shape in (_LISTED, _OPTION, _BEARER):
        line = shape.sub(_hide, line)
    line = masked(line)
    for secret in known:
        line = line.replace(secret, "*" * len(secret))
    return line


def _hide(found: re.Match[str]) -> str:
    start = found.start("value") - found.start()
    return found[0][:start] + "*" * (len(found[0]) - start)
