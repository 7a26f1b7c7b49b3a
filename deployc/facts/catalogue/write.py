"""The catalogue's files: tables of what changed from version to version (`history.py`), one name a line.

`versions.json` lists the versions that were read. A version is folded into the tables as they are, none of the others
is read again; one that is in them already is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc import files
from deployc.facts.catalogue.behaviour import behaviours
from deployc.facts.catalogue.history import History, order, put, text
from deployc.facts.catalogue.parser import flags
from deployc.facts.catalogue.source import Read, Tree
from deployc.facts.codec import encode

SOURCE = "vllm {version}, its source package, read by python -m deployc.facts.catalogue"


def tables(tree: Tree) -> dict[str, Mapping[str, Any]]:
    """What one version has, by table and name. Values of "behaviour" are (value, place), the others plain JSON.

    Raises Unreadable where the sources cannot be read.
    """
    known = flags(tree)
    return {
        "behaviour": behaviours(tree),
        "flags": {name: {k: v for k, v in encode(flag).items() if k != "name"} for name, flag in known.items()},
    }


def add(version: str, tree: Tree, folder: Path) -> list[Path]:
    """Fold a version into the tables in `folder`; the files written. Raises Unreadable before anything is."""
    read = tables(tree)
    known = _versions(folder)
    written = {folder / f"{table}.json": text(_folded(folder, table, known, version, read[table])) for table in read}
    listed = sorted({*known, version}, key=order)
    written[folder / "versions.json"] = json.dumps({"source": SOURCE, "versions": listed}, indent=2) + "\n"
    for path, content in written.items():
        files.write(path, content, mode=0o644)
    return list(written)


def _versions(folder: Path) -> list[str]:
    path = folder / "versions.json"
    return list(json.loads(path.read_bytes())["versions"]) if path.exists() else []


def _folded(folder: Path, table: str, known: list[str], version: str, values: Mapping[str, Any]) -> History:
    path = folder / f"{table}.json"
    before: History = json.loads(path.read_bytes()) if path.exists() else {}
    if table != "behaviour":
        return put(before, known, version, values)
    placed: Mapping[str, Read] = values
    plain = {name: value for name, (value, _) in placed.items()}
    return put(before, known, version, plain, {name: place for name, (_, place) in placed.items()})
