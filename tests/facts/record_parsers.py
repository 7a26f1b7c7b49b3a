"""Folds what `record_parser.py` prints of versions into data/vllm_parsers.json, a history like the catalogue's tables.

`python tests/facts/record_parsers.py PYTHON FOLDER [VERSION…]`: PYTHON is an engine environment's interpreter, FOLDER
holds unpacked source packages as vllm-<version>/; without versions all of them are recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deployc import files
from deployc.facts.catalogue.history import order, put, text

HERE = Path(__file__).parent
DATA = HERE / "data" / "vllm_parsers.json"
PROVENANCE = (
    "argparse actions of each version's own `vllm serve`, listed by tests/facts/record_parser.py, which runs that "
    "version's code: option name -> [[since, action or null], ...]. Without --help; the option strings without the "
    "name itself."
)


def main(python: str, folder: Path, versions: list[str]) -> int:
    """Record each version; 1 where one could not be, the others are in the file all the same."""
    failed = 0
    for version in versions or sorted((p.name.removeprefix("vllm-") for p in folder.glob("vllm-*")), key=order):
        sources = folder / f"vllm-{version}"
        run = [python, str(HERE / "record_parser.py"), str(sources)]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(f"{version}: {done.stderr[-400:]}\n")
            failed = 1
            continue
        _fold(version, json.loads(done.stdout))
    return failed


def _fold(version: str, recorded: dict[str, Any]) -> None:
    read = json.loads(DATA.read_text()) if DATA.exists() else {"versions": [], "options": {}}
    options = put(read["options"], read["versions"], version, recorded)
    listed = sorted({*read["versions"], version}, key=order)
    head = f'"provenance": {json.dumps(PROVENANCE)},\n"versions": {json.dumps(listed)},\n"options": '
    files.write(DATA, f"{{\n{head}{text(options)}}}\n", mode=0o644)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
