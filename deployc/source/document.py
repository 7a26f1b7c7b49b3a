"""One deploy.yaml with its overlays: read, parsed, laid on each other, variables put in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source import characters
from deployc.source.interpolate import interpolate
from deployc.source.lines import Lines
from deployc.source.parse import parse
from deployc.source.text import read
from deployc.source.tree import Map, Node, Path, Scalar, Seq, merged, plain, walk

MAX_CHAIN = 16
MAX_LINE = 20_000
"""Characters: what nobody types in one line, and what the scanner would need long for."""


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values with the place of every value and key; file names are relative to `folder`."""

    values: dict[str, Any]
    spans: Mapping[Path, Span]  # of values; () is the whole file
    keys: Mapping[Path, Span]
    inputs: Mapping[str, str]  # file -> "sha256:…" of its bytes
    variables: Mapping[str, str]  # environment variables used -> "sha256:…" of their values
    folder: File


def load(path: File, env: Mapping[str, str]) -> tuple[Document | None, Report]:
    """Read a deploy.yaml and what it `extends` (DC100-DC149). None where nothing can be made of it; never raises."""
    path = File(path)
    report, inputs = Report(), dict[str, str]()
    root = _layers(path, inputs, report)
    if root is None:
        return None, report
    for key in [key for key in root.entries if key.startswith("x-") or key == "extends"]:
        del root.entries[key]
    variables = interpolate(root, env, report)
    spans = {at: node.span for at, node in walk(root)}
    keys = {(*at, key): span for at, node in walk(root) if isinstance(node, Map) for key, span in node.keys.items()}
    return Document(plain(root), spans, keys, inputs, variables, path.parent), report


def _layers(path: File, inputs: dict[str, str], report: Report) -> Map | None:
    """The file laid on its base, that on its own base, and so on."""
    folder, asked = path.parent, None
    chain: list[str] = []  # real paths, to see a circle behind links
    layers: list[Map] = []
    while True:
        name = os.path.relpath(path, folder)
        text = read(path, name, asked)
        if isinstance(text, Diagnostic):
            report.add(text)
            return None
        chain.append(os.path.realpath(path))
        inputs[name] = text[1]
        layer = _layer(text[0], name, report)
        if layer is None:
            return None
        layers.append(layer)
        if (base := layer.entries.get("extends")) is None:
            break
        if wrong := _wrong_base(base):
            report.add(wrong)
            return None
        path, asked = path.parent / str(base.value), base.span  # type: ignore[union-attr]
        if os.path.realpath(path) in chain or len(chain) == MAX_CHAIN:
            report.add(_circle([*inputs, os.path.relpath(path, folder)], base.span))
            return None
    result = layers.pop()
    while layers:
        over = layers.pop()
        both = merged(result, over)
        assert isinstance(both, Map)  # noqa: S101  (two maps merge to a map)
        result = both
    return result


def _layer(text: str, name: str, report: Report) -> Map | None:
    """The map that one file holds. A look-alike of punctuation is named, and the text then read as it was meant."""
    lines = Lines(text, name)
    hidden = list(characters.forbidden(text, lines))
    report.extend(hidden)
    if (long := next((i for i, line in enumerate(text.split("\n")) if len(line) > MAX_LINE), None)) is not None:
        report.add(_long_line(lines.span(long, 0, 1)))
        return None
    if hidden:
        return None
    if suspects := characters.suspects(text):
        quoted = parse(text, lines, Report()).quoted
        meant = [i for i in suspects if not any(begin < i < end for begin, end in quoted)]
        report.extend(characters.look_alikes(text, meant, lines))
        if (as_meant := characters.mended(text, meant)) is None:
            return None
        text = as_meant
    root = parse(text, lines, report).root
    if root is None or isinstance(root, Map):
        return root
    detail = f"It holds {'a list' if isinstance(root, Seq) else 'one value'}, not keys with values."
    fix = (
        "begin with `version: 1`, then name, model, hardware, workload and engine, each followed by a colon and a space"
    )
    report.add(error("DC114", "the file is not a map of keys", detail, fix, root.span))
    return None


def _wrong_base(base: Node) -> Diagnostic | None:
    named = isinstance(base, Scalar) and isinstance(base.value, str) and bool(base.value.strip())
    if named and isinstance(base, Scalar) and "${" not in base.text and base.text.isprintable():
        return None
    detail = "It takes the path of one file, relative to the file it stands in; variables are not put in here."
    return error("DC115", "`extends` does not name a file", detail, "write extends: base.yaml", base.span)


def _long_line(at: Span) -> Diagnostic:
    detail = f"This line has more than {MAX_LINE:,} characters."
    return error("DC118", "the file is too large", detail, "name a file instead of its content, or break the line", at)


def _circle(chain: list[str], at: Span) -> Diagnostic:
    shown = " -> ".join(chain)
    detail = f"{shown}." if len(chain) <= MAX_CHAIN else f"More than {MAX_CHAIN} files: {shown}."
    return error("DC116", "`extends` goes in a circle", detail, "remove one of the links", at)
