"""A deploy.yaml with some values changed: comments, order and every line that has nothing to do with them stay.

ruamel.yaml writes the changed file; a line that it would only have spaced or quoted otherwise is taken from the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from io import StringIO
from itertools import pairwise
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.tokens import CommentToken
from ruamel.yaml.util import load_yaml_guess_indent

from deployc.diagnostics import Report
from deployc.source.lines import Lines
from deployc.source.parse import parse
from deployc.source.tree import Path, plain

WIDE = 2**20
"""Columns: lines are never folded."""
EOL = 2
"""Where ruamel keeps what stands behind a value, up to the next key."""


class NotEdited(Exception):
    """The values cannot be put into this text without changing others: an alias or a merge holds them."""


def edited(text: str, changes: Mapping[Path, str | int]) -> str:
    """The text with each value put at its path; sections that are missing are made. `text` is valid YAML, a map.

    Raises NotEdited.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    original = text.replace("\r\n", "\n")
    result = _with_kept_lines(original, _written(original, {}), _written(original, changes))
    wanted, root = _values(original), _values(result)
    for path, value in changes.items():
        _put_plain(wanted, path, value)
    if root != wanted:
        raise NotEdited
    return result.replace("\n", ending)


def _with_kept_lines(original: str, unchanged: str, changed: str) -> str:
    """`unchanged` is the text as ruamel writes it: what is equal in it and in `changed` stays as it was."""
    lines, before, after = (of.splitlines(keepends=True) for of in (original, unchanged, changed))
    if len(before) != len(lines):
        return changed  # it broke or joined lines: nothing to compare with
    kept: list[str] = []
    for kind, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        kept += lines[first:last] if kind == "equal" else after[start:end]
    return "".join(kept)


def _values(text: str) -> Any:
    root = parse(text, Lines(text, ""), Report()).root
    return plain(root) if root is not None else None


def _put_plain(values: Any, path: Path, value: str | int) -> None:
    for part in path[:-1]:
        if not isinstance(values.get(part), dict):
            values[part] = {}
        values = values[part]
    values[path[-1]] = value


def _written(text: str, changes: Mapping[Path, str | int]) -> str:
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = WIDE, True
    _, indent, offset = load_yaml_guess_indent(text)
    yaml.indent(mapping=_step(text) or 2, sequence=indent or 4, offset=2 if offset is None else offset)
    root = yaml.load(text)
    for path, value in changes.items():
        _put(root, path, value)
    stream = StringIO()
    yaml.dump(root, stream)
    return stream.getvalue()


def _step(text: str) -> int | None:
    """Spaces by which the first nested map is indented."""
    for before, line in pairwise(text.splitlines()):
        step = len(line) - len(line.lstrip(" "))
        opens = before[:1].strip() and before.split("#")[0].rstrip().endswith(":")
        if opens and step and not line.lstrip().startswith("-"):
            return step
    return None


def _put(root: CommentedMap, path: Path, value: str | int) -> None:
    node = root
    for depth, part in enumerate(path[:-1]):
        if not isinstance(node.get(part), CommentedMap):
            _append(node, part, _nested(path[depth + 1 :], value))
            return
        node = node[part]
    if path[-1] in node:
        node[path[-1]] = value
    else:
        _append(node, path[-1], value)


def _nested(path: Path, value: str | int) -> CommentedMap:
    inner: Any = value
    for part in reversed(path):
        inner = CommentedMap({part: inner})
    found: CommentedMap = inner
    return found


def _append(node: CommentedMap, key: str | int, value: Any) -> None:
    """A key at the end of a map. What stands below the map (blank lines, the comment of the next key) hangs on its last
    value, for ruamel, and moves on to the new one."""
    if isinstance(value, CommentedMap) and node.fa.flow_style():
        value.fa.set_flow_style()
    below = _cut(node) if node else None
    node[key] = value
    while isinstance(value, CommentedMap):
        node, key = value, next(reversed(value))
        value = node[key]
    if below:
        node.ca.items[key] = [None, None, below, None]


def _cut(node: CommentedMap | CommentedSeq) -> CommentToken | None:
    """The lines below the last value of a map, taken from it; a comment behind the value stays there."""
    if node.fa.flow_style():
        return None
    last = next(reversed(node)) if isinstance(node, CommentedMap) else len(node) - 1
    inner = node[last]
    if isinstance(inner, CommentedMap | CommentedSeq) and len(inner) and not inner.fa.flow_style():
        return _cut(inner)
    tokens = node.ca.items.get(last)
    place = EOL if isinstance(node, CommentedMap) else 0
    if not tokens or tokens[place] is None:
        return None
    token = tokens[place]
    head, end, below = token.value.partition("\n")
    if not below:
        return None
    moved = CommentToken("\n" + below, token.start_mark, None)
    if head.strip():
        token.value = head + end
    else:
        tokens[place] = None
    return moved
