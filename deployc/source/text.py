"""A file's text, or what keeps it from being one."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path as File

from deployc.diagnostics import Diagnostic, Span, error

MAX_BYTES = 2**20


def read(path: File, name: str, asked: Span | None) -> tuple[str, str] | Diagnostic:
    """Text and "sha256:…" of its bytes; `name` is how it is shown, `asked` where another file names it.

    A byte-order mark is dropped. DC100 what cannot be opened, DC118 over 1 MiB, DC101 what is not UTF-8.
    """
    at = asked or Span(name, 1, 1, 2)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device could keep us waiting for ever
            return _unreadable(path, name, "it is no regular file but a folder, pipe or device", at)
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as wrong:
        return _unreadable(path, name, wrong.strerror or str(wrong), at)
    except ValueError:  # a path with NUL in it
        return _unreadable(path, name, "no file can have this name", at)
    if len(data) > MAX_BYTES:
        detail = f"{name} has more than {MAX_BYTES // 2**20} MiB; a deploy.yaml has some dozen lines."
        return error("DC118", "the file is too large", detail, "name the right file", at)
    try:
        return data.decode("utf-8-sig"), "sha256:" + hashlib.sha256(data).hexdigest()
    except UnicodeDecodeError as wrong:
        return _not_utf8(data, wrong, name)


def _unreadable(path: File, name: str, why: str, at: Span) -> Diagnostic:
    folder = os.path.isdir(path)  # noqa: PTH112  (says False of a path that cannot be, where Path raises)
    fix = f"name the file in it: -f {path / 'deploy.yaml'}" if folder else "check the path and its permissions"
    return error("DC100", "the file cannot be read", f"{name}: {why[:1].lower()}{why[1:]}.", fix, at)


def _not_utf8(data: bytes, wrong: UnicodeDecodeError, name: str) -> Diagnostic:
    begin = data.rfind(b"\n", 0, wrong.start) + 1
    line, column = data.count(b"\n", 0, begin) + 1, len(data[begin : wrong.start].decode("utf-8", "replace"))
    kind = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else _kind(data)
    detail = f"Byte 0x{data[wrong.start]:02x} at offset {wrong.start} is no UTF-8" + (
        f"; it may be {kind}." if kind else "."
    )
    fix = f"save {name} as UTF-8" + (f": iconv -f {kind} -t UTF-8" if kind else "")
    shown = data[begin : begin + 200].split(b"\n")[0].decode("utf-8", "replace")
    excerpt = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "\ufffd", shown)
    at = Span(name, line, column + 1, column + 2, excerpt)
    return error("DC101", "the file is not UTF-8 text", detail, fix, at)


def _kind(data: bytes) -> str:
    """What a Chinese editor most often saves instead, if the bytes could be that."""
    try:
        data.decode("gb18030")
    except UnicodeDecodeError:
        return ""
    return "GB18030"
