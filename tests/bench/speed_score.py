"""The speed model against the measured runs that ship with the tool, beside another estimator on those that it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from deployc.data import profiles

OTHER = Path(__file__).parent / "data" / "aiconfigurator.jsonl"


def main() -> int:
    """Print the tables; the exit code of the score."""
    rows = profiles() / "calibration" / "rows" / "h200_speed.jsonl"
    starts = rows.with_name("h200_memory.jsonl")  # what their engines had left for the KV cache
    command = [sys.executable, "-m", "deployc", "calibrate", "score", str(rows), str(starts), "--against", str(OTHER)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
