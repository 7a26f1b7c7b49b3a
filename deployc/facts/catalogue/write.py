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
from deployc.facts.catalogue.backends import backends
from deployc.facts.catalogue.behaviour import behaviours
from deployc.facts.catalogue.history import History, at, order, put, text
from deployc.facts.catalogue.image import image_facts
from deployc.facts.catalogue.maps import maps
from deployc.facts.catalogue.methods import methods
from deployc.facts.catalogue.parser import flags
from deployc.facts.catalogue.registries import registries
from deployc.facts.catalogue.source import Absent, Read, Tree, Unreadable
from deployc.facts.catalogue.variables import variables
from deployc.facts.codec import encode

SOURCE = "vllm {version}, its source package, read by python -m deployc.facts.catalogue"
WHEEL = "vllm {version}, its wheel, read by python -m deployc.facts.catalogue; its image as the versions around it"


def tables(tree: Tree) -> dict[str, Mapping[str, Any]]:
    """What one version has, by table and name. Values of "behaviour" are (value, place), the others plain JSON.

    Raises Unreadable where the sources cannot be read.
    """
    known = flags(tree)
    return {
        "backends": backends(tree),
        "behaviour": behaviours(tree) | _image(tree),
        "flags": {name: {k: v for k, v in encode(flag).items() if k != "name"} for name, flag in known.items()},
        "maps": maps(tree),
        "methods": methods(tree),
        "registries": registries(tree),
        "variables": variables(tree),
    }


def _image(tree: Tree) -> dict[str, Read]:
    try:
        return image_facts(tree)
    except Absent:
        if not tree.wheel:
            raise
        return {}


def add(version: str, tree: Tree, folder: Path) -> list[Path]:
    """Fold a version into the tables in `folder`; the files written. Raises Unreadable before anything is."""
    index = _index(folder)
    read, known = tables(tree), index["versions"]
    written = {folder / f"{table}.json": text(_folded(folder, table, known, version, tree, read)) for table in read}
    wheels = {*index["wheels"]} - {version} | ({version} if tree.wheel else set())
    index = {
        "source": SOURCE,
        "versions": sorted({*known, version}, key=order),
        "wheel": WHEEL,
        "wheels": sorted(wheels, key=order),
    }
    written[folder / "versions.json"] = json.dumps(index, indent=2) + "\n"
    for path, content in written.items():
        files.write(path, content, mode=0o644)
    return list(written)


def _index(folder: Path) -> dict[str, Any]:
    path = folder / "versions.json"
    read: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"versions": [], "wheels": []}
    return read


def _folded(
    folder: Path, table: str, known: list[str], version: str, tree: Tree, read: Mapping[str, Mapping[str, Any]]
) -> History:
    path = folder / f"{table}.json"
    before: History = json.loads(path.read_bytes()) if path.exists() else {}
    if table != "behaviour":
        return put(before, known, version, read[table])
    placed: Mapping[str, Read] = read[table]
    plain = {name: value for name, (value, _) in placed.items()}
    if tree.wheel:
        plain = _around(before, known, version) | plain
    return put(before, known, version, plain, {name: place for name, (_, place) in placed.items()})


def _around(history: History, known: list[str], version: str) -> dict[str, Any]:
    """What the releases before and after have alike. Raises Unreadable where they differ: this one is between them."""
    older = max((one for one in known if order(one) < order(version)), key=order, default=None)
    newer = min((one for one in known if order(one) > order(version)), key=order, default=None)
    if older is None or newer is None:
        raise Unreadable("a wheel holds no Dockerfile, and it is not between versions whose image is known")
    first, last = at(history, older), at(history, newer)
    if differing := sorted(name for name in _IMAGE if first.get(name) != last.get(name)):
        raise Unreadable(f"a wheel holds no Dockerfile, and {older} and {newer} differ in {', '.join(differing)}")
    return {name: first[name] for name in _IMAGE if name in first}


_IMAGE = ("compute_capabilities", "cuda", "cuda_compat", "entrypoint", "lora_ranks", "wheel_cuda")
"""Behaviours that are read with the Dockerfile."""
