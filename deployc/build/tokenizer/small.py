"""The small files of a folder, read once, and which of them belong to the tokenizer, the template, generation.

Byte order marks are taken off text files: transformers and tokenizers read strict UTF-8 and would refuse them.
Line ends stay: a template is read in text mode, where CRLF is LF.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployc.facts import faults
from deployc.facts.headers import INDEX
from deployc.facts.source import is_pinned
from deployc.types.manifest import Content

CONFIG, JSON, MAP, ADDED = "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json", "added_tokens.json"
GENERATION = "generation_config.json"
_TOKENIZER = re.compile(
    r"(?!.*\.py$)(tokenizer.*|special_tokens_map\.json|added_tokens\.json|vocab\..*|merges\.txt|.*\.model)"
)
_VOCABULARY = re.compile(r"tokenizer\.json|vocab\.(json|txt)|.*\.model|tokenizer\.model.*")


@dataclass(frozen=True, slots=True)
class Small:
    """Name -> content; `where` is the folder as people know it ("the model", "adapter qa").

    `read` is what was read of each file, byte order mark and all: what its pin is held against.
    """

    where: str
    files: Mapping[str, bytes]
    read: Mapping[str, Content] = field(default_factory=dict)

    def json(self, name: str) -> dict[str, Any]:
        """A file's JSON object, {} where there is no such file. Raises Fault DC203."""
        return parsed(self.files[name], name, self.where) if name in self.files else {}


def is_tokenizer(name: str) -> bool:
    """Files of the tokenizer's set. Python code is none: an adapter's is never taken over."""
    return _TOKENIZER.fullmatch(name) is not None


def is_vocabulary(name: str) -> bool:
    """Files that give tokens their ids: with one of them a tokenizer is whole."""
    return _VOCABULARY.fullmatch(name) is not None


def is_template(name: str) -> bool:
    """chat_template.jinja, and chat_template.json of processors."""
    return name.startswith("chat_template.")


def of_model(folder: Path) -> Small:
    """All files that the artifact has from the model's folder: the pinned ones but weights, index, config.json."""
    return _read(folder, "the model", [n for n in _pinned(folder) if n != "config.json"])


def of_adapter(folder: Path, name: str) -> Small:
    """What an artifact may take over from an adapter's folder."""
    taken = [n for n in _pinned(folder) if is_tokenizer(n) or is_template(n) or n == GENERATION]
    return _read(folder, f"adapter {name}", taken)


def parsed(raw: bytes, name: str, where: str) -> dict[str, Any]:
    """A JSON object. Raises Fault DC203."""
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as wrong:
        lfs = " It is a git-lfs pointer; run `git lfs pull`." if raw.startswith(b"version https://git-lfs") else ""
        raise faults.bad_json(name, where, f"not JSON: {wrong}.{lfs}") from None
    if not isinstance(value, dict):
        raise faults.bad_json(name, where, f"a JSON object is expected, not {type(value).__name__}.")
    return value


def written(value: Any) -> bytes:
    """As transformers writes its JSON files."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def _pinned(folder: Path) -> list[str]:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return [name for name in names if is_pinned(name) and not name.endswith((".safetensors", ".bin", INDEX))]


def _read(folder: Path, where: str, names: list[str]) -> Small:
    read = {name: (folder / name).read_bytes() for name in names}
    files = {name: raw.removeprefix(codecs.BOM_UTF8) if _is_text(name) else raw for name, raw in read.items()}
    return Small(where, files, {n: Content(len(raw), hashlib.sha256(raw).hexdigest()) for n, raw in read.items()})


def _is_text(name: str) -> bool:
    return name.endswith((".json", ".jinja", ".txt"))
