"""A secret typed as a literal: refused, and its characters masked in everything that is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployc.diagnostics import Diagnostic, Span, error
from deployc.spec.deploy import Path

_NAME = re.compile(r"(?i)(?:^|[^a-z])(?:api[-_]?key|token|secret|passw(?:or)?d|credentials?|private[-_]?key)s?$")
_NOT_SECRET = re.compile(r"(?i)(?:max|num|input|output|prefix|batched|pad|eos|bos|stop|image|draft)[-_a-z]*tokens?")
_VALUE = re.compile(
    r"^(?:sk-[A-Za-z0-9_-]{8,}|hf_[A-Za-z0-9]{8,}|ghp_[A-Za-z0-9]{8,}|ms-[0-9a-f-]{20,}|AKIA[A-Z0-9]{12,})"
)
_REFERENCES = (("target", "api_key"), ("target", "hub_token"))


def literal_secrets(values: Mapping[str, Any], spans: Mapping[Path, Span]) -> list[Diagnostic]:
    """DC164 for every literal where a secret's reference belongs, or that looks like a secret anywhere."""
    found = []
    for path, value in _leaves(values, ()):
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            continue
        if path in _REFERENCES or (path[:2] not in _REFERENCES and _looks_secret(path, str(value))):
            found.append(
                error(
                    "DC164",
                    "a secret is typed as a literal",
                    f"{'.'.join(map(str, path))} holds the value itself; it would be in the repository for ever.",
                    "name where it is found, {env: NAME} or {file: PATH}, and replace the exposed secret",
                    spans.get(path),
                )
            )
    return found


def masked(spans: Mapping[Path, Span], secrets: Sequence[Diagnostic]) -> Mapping[Path, Span]:
    """The spans, with the characters of the secrets hidden in every excerpt of their lines."""
    places = [d.at for d in secrets if d.at]
    if not places:
        return spans
    lines: dict[tuple[str, int], str] = {}
    for at in places:
        text = lines.get((at.file, at.line), at.excerpt)
        start, end = at.column - 1, max(at.end_column - 1, at.column)
        lines[at.file, at.line] = text[:start] + "*" * (min(end, len(text)) - start) + text[end:]
    return {path: replace(at, excerpt=lines.get((at.file, at.line), at.excerpt)) for path, at in spans.items()}


def _looks_secret(path: Path, value: str) -> bool:
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    in_free_map = path[:2] in (("engine", "env"), ("engine", "args"), ("target", "labels"))
    return bool(_VALUE.match(value)) or (in_free_map and bool(_NAME.search(name)) and not _NOT_SECRET.search(name))


def _leaves(node: Any, path: Path) -> list[tuple[Path, Any]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in _leaves(value, (*path, key))]
    if isinstance(node, list):
        return [leaf for index, value in enumerate(node) for leaf in _leaves(value, (*path, index))]
    return [(path, node)]
