"""The map that a YAML file of others holds, under the same bounds as a deploy.yaml."""

from __future__ import annotations

from deployc.diagnostics import Report
from deployc.source import characters
from deployc.source.document import MAX_LINE
from deployc.source.lines import Lines
from deployc.source.parse import parse
from deployc.source.tree import Map


def yaml_root(text: str, lines: Lines, report: Report) -> Map | None:
    """The map, None where there is none (DC102-DC119 say why). Look-alikes of YAML's punctuation are read as meant."""
    hidden = list(characters.forbidden(text, lines))
    report.extend(hidden)
    if hidden or any(len(line) > MAX_LINE for line in text.split("\n")):
        return None
    if suspects := characters.suspects(text):
        report.extend(characters.look_alikes(text, suspects, lines))
        text = characters.mended(text, suspects) or text
    root = parse(text, lines, report).root
    return root if isinstance(root, Map) else None
