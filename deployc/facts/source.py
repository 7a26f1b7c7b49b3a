"""Where a model or adapter lies: a folder or a repository of a hub, read the same way.

In: `./folder` or `owner/name`. Out: a `Source`: which files there are with the digests that pin them, small files
whole, and byte ranges of large ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from deployc.facts import faults

SMALL = 64 * 2**20
"""Bytes: the most that is read of a file that is read whole (config.json, the index, tokenizer_config.json)."""

_PINNED = re.compile(
    r"(config|generation_config|adapter_config|preprocessor_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|tokenizer.*|merges\.txt|vocab\.txt|chat_template.*|[^/]+\.(model|py|safetensors)|[^/]+\.safetensors\.index\.json"
    r"|(?!training_args|optimizer|scheduler)[^/]+\.bin"
)
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY = re.compile(f"{_PART}/{_PART}")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/@-]{0,199}")

Hub = Literal["huggingface", "modelscope", "folder"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file at the root of a source: its bytes and what pins its content ("sha256:…", "etag:…", "sampled:…")."""

    size: int
    digest: str


class Source(Protocol):
    """A folder or a repository at one commit. Every method raises Fault with a diagnostic of its own."""

    hub: Hub
    revision: str | None  # commit; None for a folder
    where: str  # for people: "huggingface.co/owner/name at 0123abcd", "./folder"
    gated: bool  # whether the hub gives it to none but those whom its owner let in

    def files(self) -> Mapping[str, Entry]:
        """The files at the root, by name; not their content."""

    def read(self, name: str) -> bytes:
        """A small file whole."""

    def range(self, name: str, begin: int, end: int) -> bytes:
        """Exactly the bytes [begin, end) of a file."""


def is_folder(source: str) -> bool:
    """A folder is what starts with ./, ../, / or ~ (or is `.` or `..`); everything else is a hub id."""
    return source.startswith(("./", "../", "/", "~")) or source in (".", "..")


def check_repository(source: str) -> str:
    """The id of a hub repository as it may go into a URL. Raises Fault DC200: exactly one slash, no path tricks."""
    if ".." in source or "--" in source or source.endswith(".git") or not _REPOSITORY.fullmatch(source):
        shown = source if len(source) < 120 else source[:117] + "..."
        raise faults.not_a_source(f"{shown!r} is neither a folder (it has no ./ in front) nor a hub id owner/name.")
    return source


def check_revision(revision: str | None, host: str, repository: str) -> None:
    """Raises Fault DC213 for a revision that cannot be a branch, tag or commit."""
    if revision is not None and (not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision):
        raise faults.no_revision(host, repository, revision)


def is_pinned(name: str) -> bool:
    """Whether a file makes the model what it is: config, tokenizer, template, code and weights."""
    return _PINNED.fullmatch(name) is not None


def pinned(files: Mapping[str, Entry]) -> dict[str, str]:
    """Name -> digest of the files that `is_pinned` keeps, sorted."""
    return {name: entry.digest for name, entry in sorted(files.items()) if is_pinned(name)}


def read_json(source: Source, name: str) -> dict[str, Any]:
    """A JSON object from a small file of the source. Raises Fault DC203."""
    raw = source.read(name)
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as wrong:
        kind = " It is an HTML page." if raw.lstrip()[:1] == b"<" else ""
        if raw.startswith(b"version https://git-lfs"):
            kind = " It is a git-lfs pointer; run `git lfs pull`."
        raise faults.bad_json(name, source.where, f"not JSON: {wrong}.{kind}") from None
    if not isinstance(value, dict):
        raise faults.bad_json(name, source.where, f"a JSON object is expected, not {type(value).__name__}.")
    return value
