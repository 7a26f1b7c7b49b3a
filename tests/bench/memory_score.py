"""The memory model against the measured starts that ship with the tool: errors by quantity, and models left out.

In the sample: `deployc calibrate score`. Left out: the constants are fitted anew without each model in turn
(deployc/measure/calibrate/memory_fit.py); everything else is read in the engine's sources and fits nothing.
"""

from __future__ import annotations

import subprocess
import sys

from deployc.data import profiles
from deployc.measure.calibrate import memory_fit


def main() -> int:
    """Print the table and both fits; the exit code of the score."""
    rows = sorted((profiles() / "calibration" / "rows").glob("*_memory.jsonl"))
    done = subprocess.run([sys.executable, "-m", "deployc", "calibrate", "score", *map(str, rows)], check=False)
    sys.stdout.write("\n")
    sys.stdout.flush()
    return done.returncode or memory_fit.main([])


if __name__ == "__main__":
    raise SystemExit(main())
