"""A secret typed as a literal: refused, and its characters masked in everything that is shown.

READ masks what looks like a secret in the line it stands on; here the sections are known, so that anything typed where
a reference belongs is one, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployc.diagnostics import Diagnostic, Span, error
from deployc.source.secrets import secret_name, secret_value
from deployc.spec.deploy import Path

REFERENCES = (("target", "api_key"), ("target", "hub_token"))
_VARIABLE = re.compile(r"\$?\{?[A-Za-z_][A-Za-z0-9_]*\}?\Z")  # with the `$` that people put before it: DC163
_LOGIN = re.compile(r"(?i)\A(?:[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s]*@|https?://[^/\s]*@)")
_PLACE = re.compile(r"(?i)_(?:file|path|dir)\Z")  # HF_TOKEN_PATH: where a secret is, not what it is
_SHORTEST, _MOST = 4, 200  # words of a secret that runs over lines


def literal_secrets(values: Mapping[str, Any], spans: Mapping[Path, Span]) -> list[Diagnostic]:
    """DC164 for every literal where a secret's reference belongs, or that looks like a secret anywhere."""
    return [
        error(
            "DC164",
            "a secret is typed as a literal",
            f"{'.'.join(map(str, path))} holds the value itself; it would be in the repository for ever.",
            "name where it is found, {env: NAME} or {file: PATH}, and replace the exposed secret",
            spans.get(path),
        )
        for path, _ in _found(values)
    ]


def masked(spans: Mapping[Path, Span], values: Mapping[str, Any], places: Mapping[Path, Span]) -> Mapping[Path, Span]:
    """The spans, with the characters of the secrets among the values hidden; `places` are those of the values."""
    found = [(places[path], value) for path, value in _found(values) if path in places]
    if not found:
        return spans
    lines: dict[tuple[str, int], str] = {}
    for at, _ in found:
        text = lines.get((at.file, at.line), at.excerpt)
        start, end = at.column - 1, min(max(at.end_column - 1, at.column), len(text))
        lines[at.file, at.line] = text[:start] + "*" * (end - start) + text[end:]
    words = sorted({word for _, value in found for word in _further_lines(value)}, key=len, reverse=True)[:_MOST]
    further = re.compile("|".join(map(re.escape, words)) or r"\Z.")

    def hidden(at: Span) -> Span:
        text = lines.get((at.file, at.line), at.excerpt)
        return replace(at, excerpt=further.sub(lambda word: "*" * len(word[0]), text))

    return {path: hidden(at) for path, at in spans.items()}


def without_secrets(found: Sequence[Diagnostic], secrets: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings that are not about a secret itself: what else is wrong with it would repeat it."""
    places = {secret.at for secret in secrets}
    return [diagnostic for diagnostic in found if diagnostic.at is None or diagnostic.at not in places]


def _found(values: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for path, value in _leaves(values, ()):
        if isinstance(value, bool) or value is None or value == "":
            continue
        inside = path[:2] in REFERENCES
        if _shaped(str(value)) or (_no_reference(path, str(value)) if inside else _named(path, str(value))):
            yield path, str(value)


def _shaped(value: str) -> bool:
    return secret_value(value) or bool(_LOGIN.match(value))


def _no_reference(path: Path, value: str) -> bool:
    """Whether a value under a reference is anything but a variable's name or a path."""
    return path[2:] != ("file",) and (path[2:] != ("env",) or not _VARIABLE.match(value))


def _named(path: Path, value: str) -> bool:
    if path[:2] == ("model", "overrides"):
        return False  # config.json's own names, as in `bos_token`
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    return secret_name(name) and not (_PLACE.search(name) and value.startswith(("/", "./", "../", "~/")))


def _further_lines(value: str) -> list[str]:
    """The words of a value that may run over several lines, the later of which no span of its own covers."""
    words = value.split()
    return [word for word in words if len(word) >= _SHORTEST] if len(words) > 1 else []


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, index))
    else:
        yield path, node
