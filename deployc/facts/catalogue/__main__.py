"""`python -m deployc.facts.catalogue VERSION… [--sources FOLDER] [--output FOLDER]`: write the catalogue of a version.

`--sources` takes an unpacked source package instead of fetching it (one version then).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from deployc import files
from deployc.data import profiles
from deployc.facts.catalogue.fetch import fetch
from deployc.facts.catalogue.source import Tree, Unreadable
from deployc.facts.catalogue.write import render


def main(arguments: list[str] | None = None) -> int:
    """Write one file a version; 0, or 1 where a version could not be read (the others are written all the same)."""
    parser = argparse.ArgumentParser(prog="python -m deployc.facts.catalogue")
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    parser.add_argument("--sources", type=Path, help="an unpacked source package, instead of fetching it")
    parser.add_argument("--output", type=Path, default=profiles() / "engines")
    options = parser.parse_args(arguments)
    if options.sources and len(options.versions) > 1:
        parser.error("--sources holds one version")
    failed = 0
    for version in options.versions:
        path = options.output / f"vllm-{version}.json"
        try:
            with tempfile.TemporaryDirectory() as folder:
                files.write(path, render(version, Tree(options.sources or fetch(version, Path(folder)))), mode=0o644)
        except Unreadable as why:
            sys.stderr.write(f"vllm {version}: {why}\n")
            failed = 1
        else:
            sys.stdout.write(f"{path}\n")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
