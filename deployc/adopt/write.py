"""Values and comments -> the text of a deploy.yaml."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from deployc.adopt.flags import Placed
from deployc.source.secrets import masked

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")
"""Characters that cannot stand in a deploy.yaml."""
_PLAIN = re.compile(r"[A-Za-z0-9/~.][A-Za-z0-9/~._:@+-]*\Z")
_WIDE = 2**20


def text(placed: Placed, origin: str) -> str:
    """The file: what it came from, the keys with their comments, and what was left out and why."""
    root = CommentedMap()
    for dotted, value in placed.keys.items():
        _put(root, dotted.split("."), value, placed.comments.get(dotted, ""))
    for dotted, comment in placed.comments.items():
        if dotted.startswith("engine.args.") and "args" in root.get("engine", {}):
            _comment(root["engine"]["args"], dotted.removeprefix("engine.args."), comment)
    yaml = YAML()
    yaml.width = _WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    yaml.dump(root, stream)
    return f"# Imported from {_line(origin)}.\n" + stream.getvalue() + _left_out(placed)


def _left_out(placed: Placed) -> str:
    if not placed.left_out:
        return ""
    lines = (f"#   {_line(masked(written))}: {_line(why)}" for written, why in placed.left_out)
    return "\n# Not taken over:\n" + "\n".join(lines) + "\n"


def _put(node: CommentedMap, path: list[str], value: Any, comment: str) -> None:
    for part in path[:-1]:
        node = node.setdefault(part, CommentedMap())
    flow = path != ["engine", "args"][: len(path)] and path[-1] not in ("args", "env", "overrides", "generation")
    node[path[-1]] = _plain(value, flow)
    _comment(node, path[-1], comment)


def _comment(node: CommentedMap, key: str, comment: str) -> None:
    if comment and key in node:
        node.yaml_add_eol_comment(_line(comment), key, column=0)


def _plain(value: Any, flow: bool = True) -> Any:
    """A value as YAML holds it: text that could be read as something else in double quotes, `${` never a variable."""
    if isinstance(value, dict):
        found = CommentedMap({_word(str(key)): _plain(inner) for key, inner in value.items()})
        if flow or not value:
            found.fa.set_flow_style()
        return found
    if isinstance(value, list | tuple):
        items = CommentedSeq([_plain(inner) for inner in value])
        items.fa.set_flow_style()
        return items
    if isinstance(value, bool | int | float) or value is None:
        return value
    return _word(str(value))


def _word(value: str) -> str:
    clean = CONTROL.sub("\ufffd", value).replace("${", "$${")
    plain = _PLAIN.match(clean) and not clean.endswith(":")
    return clean if plain else DoubleQuotedScalarString(clean)


def _line(value: str) -> str:
    return " ".join(CONTROL.sub(" ", value).split())
