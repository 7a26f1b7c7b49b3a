"""One deploy.yaml with its overlays: read, decoded, parsed, laid on each other, variables put in."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source.characters import odd_characters
from deployc.source.interpolate import interpolate
from deployc.source.parse import parse
from deployc.source.tree import Map, Node, Path, Scalar, merged, plain, walk

MAX_BYTES = 2**20
MAX_CHAIN = 16


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values with the place of every value and key; file names are relative to `folder`."""

    values: dict[str, Any]
    spans: Mapping[Path, Span]
    keys: Mapping[Path, Span]
    inputs: Mapping[str, str]  # file -> "sha256:…" of its bytes
    variables: Mapping[str, str]  # environment variables used -> "sha256:…" of their values
    folder: File


def load(path: File, env: Mapping[str, str]) -> tuple[Document | None, Report]:
    """Read a deploy.yaml and what it `extends`. Returns None where nothing can be made of it."""
    report, inputs = Report(), dict[str, str]()
    root = _layers(File(path), File(path).parent, inputs, report)
    if root is None:
        return None, report
    if not isinstance(root, Map):
        report.add(
            error(
                "DC114",
                "the file is not a map of keys",
                f"It holds a {_kind(root)}.",
                "write keys: version, name, model, hardware, workload, engine",
                root.span,
            )
        )
        return None, report
    for key in [key for key in root.entries if key.startswith("x-") or key == "extends"]:
        del root.entries[key]
    variables = interpolate(root, env, report)
    spans = {path: node.span for path, node in walk(root)}
    keys = {(*path, key): span for path, node in walk(root) if isinstance(node, Map) for key, span in node.keys.items()}
    return Document(plain(root), spans, keys, inputs, variables, File(path).parent), report


def _layers(path: File, folder: File, inputs: dict[str, str], report: Report) -> Node | None:
    """The file laid on its base, that on its own base, and so on."""
    layers: list[Node] = []
    asked: Span | None = None
    seen: list[File] = []
    while True:
        name = os.path.relpath(path, folder)
        if path.resolve() in seen or len(seen) >= MAX_CHAIN:
            chain = " -> ".join(os.path.relpath(p, folder) for p in [*(s for s in seen), path])
            report.add(error("DC116", "`extends` goes in a circle", f"{chain}.", "remove one of the links", asked))
            return None
        seen.append(path.resolve())
        text = _text(path, name, asked, inputs, report)
        if text is None:
            return None
        report.extend(odd_characters(text, name))
        trouble = Report()
        root = parse(text, name, trouble)
        if root is None and any(d.code == "DC113" for d in report):
            return None  # the look-alike characters are the cause; the parser's complaint would only confuse
        report.extend(trouble)
        if root is None:
            return None
        layers.append(root)
        base = root.entries.get("extends") if isinstance(root, Map) else None
        if base is None:
            break
        if not isinstance(base, Scalar) or not isinstance(base.value, str) or not base.value.strip():
            report.add(
                error(
                    "DC115",
                    "`extends` does not name a file",
                    "It takes one path, relative to this file.",
                    "write extends: base.yaml",
                    base.span,
                )
            )
            return None
        path, asked = path.parent / base.value, base.span
    result = layers.pop()
    while layers:
        result = merged(result, layers.pop())
    return result


def _text(path: File, name: str, asked: Span | None, inputs: dict[str, str], report: Report) -> str | None:
    """The decoded text of a file, or None after a diagnostic; notes its hash."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as wrong:
        why = getattr(wrong, "strerror", None) or str(wrong)
        report.add(error("DC100", "the file cannot be read", f"{name}: {why}.", _way_in(path), asked or _start(name)))
        return None
    if len(data) > MAX_BYTES:
        report.add(
            error(
                "DC101",
                "the file is not text that YAML can hold",
                f"{name} is larger than {MAX_BYTES // 2**20} MiB; a deploy.yaml has some dozen lines.",
                "name the right file",
                asked or _start(name),
            )
        )
        return None
    inputs[name] = "sha256:" + hashlib.sha256(data).hexdigest()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        report.add(_not_utf8(data, wrong, name))
        return None


def _not_utf8(data: bytes, wrong: UnicodeDecodeError, name: str) -> Diagnostic:
    line = data.count(b"\n", 0, wrong.start) + 1
    column = wrong.start - (data.rfind(b"\n", 0, wrong.start) + 1)
    excerpt = re.sub(r"[\x00-\x1f\x7f]", "\ufffd", data.splitlines()[line - 1].decode("utf-8", "replace"))
    guess = " It may be GBK, GB18030 or UTF-16." if data[:2] in (b"\xff\xfe", b"\xfe\xff") or wrong.start else ""
    return error(
        "DC101",
        "the file is not text that YAML can hold",
        f"{name} is not UTF-8: byte 0x{data[wrong.start]:02x} at offset {wrong.start}.{guess}",
        "save it as UTF-8",
        Span(name, line, column + 1, column + 2, excerpt),
    )


def _way_in(path: File) -> str:
    if path.is_dir():
        return f"name the file in it: -f {path / 'deploy.yaml'}"
    return "check the path; -f names the file, ./deploy.yaml is the default"


def _start(name: str) -> Span:
    return Span(name, 1, 1, 2)


def _kind(node: Node) -> str:
    return "single value" if isinstance(node, Scalar) else "list"
