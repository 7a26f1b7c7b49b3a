"""`python -m deployc.facts.catalogue VERSION… [--sources FOLDER] [--output FOLDER]`: fold versions into the catalogue.

`--sources` takes an unpacked source package instead of fetching it (one version then).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from deployc.data import profiles
from deployc.facts.catalogue.fetch import fetch
from deployc.facts.catalogue.source import Tree, Unreadable
from deployc.facts.catalogue.write import add


def main(arguments: list[str] | None = None) -> int:
    """Fold the versions into the tables; 0, or 1 where one could not be read (the others are in them all the same)."""
    parser = argparse.ArgumentParser(prog="python -m deployc.facts.catalogue")
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    parser.add_argument("--sources", type=Path, help="an unpacked source package, instead of fetching it")
    parser.add_argument("--output", type=Path, default=profiles() / "engines" / "vllm")
    options = parser.parse_args(arguments)
    if options.sources and len(options.versions) > 1:
        parser.error("--sources holds one version")
    failed = 0
    for version in options.versions:
        try:
            with tempfile.TemporaryDirectory() as folder:
                written = add(version, Tree(options.sources or fetch(version, Path(folder))), options.output)
        except Unreadable as why:
            sys.stderr.write(f"vllm {version}: {why}\n")
            failed = 1
        else:
            sys.stdout.write(f"vllm {version}: {', '.join(map(str, written))}\n")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
