"""A secret typed as a literal: refused wherever it stands, and its characters masked in everything that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from deployc.diagnostics import Diagnostic, Span
from deployc.source.secrets import secret_name, secret_value
from deployc.source.tree import Path
from deployc.spec import faults
from deployc.spec.faults import fault
from deployc.spec.written import Written

_REFERENCES = (("target", "api_key"), ("target", "hub_token"))
_VARIABLE = re.compile(r"\$?\{?[A-Za-z_][A-Za-z0-9_]*\}?\Z")
"""Also with the `$` that people put before it, which is no secret but a mistake."""
_LOGIN = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s]*@|https?://[^/\s]*@)")
_HARMLESS = re.compile(r"(?:|[01]|true|false|auto|none|(?:~|\.{1,2})?/[\w./-]*)\Z", re.IGNORECASE)
"""What stands under a secret's name without being one: a switch, or the path of a file."""
_SHORTEST, _MOST = 4, 200  # words of a secret that runs over lines, which no span of its own covers


def secrets(written: Written) -> list[Path]:
    """The paths of all values that are secrets, or that nothing else can be where they stand."""
    return [path for path, value in written.leaves() if _is_secret(path, value)]


def literals(written: Written, paths: list[Path]) -> Iterator[Diagnostic]:
    """DC164 for each of them; `written` has masked spans."""
    for path in paths:
        shown = ".".join(map(str, path))
        fix = "write {env: NAME} or {file: PATH} in target.api_key or target.hub_token, and replace the exposed secret"
        if path[:2] == ("engine", "env"):
            fix = "let the engine's own environment bring it, remove it here, and replace the exposed secret"
        detail = f"`{shown}` holds the value itself; it would be in the repository, the plan and the bundle for ever."
        yield fault(faults.LITERAL, detail, fix, written.at(*path))


def masked(written: Written, paths: list[Path]) -> Written:
    """The file with the characters of these values hidden in every line that a span quotes."""
    places = [written.spans[path] for path in paths]
    if not places:
        return written
    lines: dict[tuple[str, int], str] = {}
    for at in places:
        text = lines.get((at.file, at.line), at.excerpt)
        start, end = at.column - 1, min(at.end_column - 1, len(text))
        lines[at.file, at.line] = text[:start] + "*" * (end - start) + text[end:]
    words = {word for path in paths for word in _further_lines(str(written.get(*path)))}
    further = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True)[:_MOST])) or r"\Z.")

    def hidden(spans: Mapping[Path, Span]) -> dict[Path, Span]:
        return {path: replace(at, excerpt=further.sub(_stars, lines.get((at.file, at.line), at.excerpt)))
                for path, at in spans.items()}  # fmt: skip

    return Written(written.values, hidden(written.spans), hidden(written.keys))


def _stars(word: re.Match[str]) -> str:
    return "*" * len(word[0])


def _further_lines(value: str) -> list[str]:
    words = value.split()
    return [word for word in words if len(word) >= _SHORTEST] if len(words) > 1 else []


def _is_secret(path: Path, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return False
    text = str(value)
    if secret_value(text) or _LOGIN.match(text):
        return True
    if path[:2] in _REFERENCES:
        return path[2:] != ("file",) and (path[2:] != ("env",) or not _VARIABLE.match(text))
    if path[:2] == ("model", "overrides"):
        return False  # config.json's own names, as in `bos_token`
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    return secret_name(name) and not _HARMLESS.match(text)
