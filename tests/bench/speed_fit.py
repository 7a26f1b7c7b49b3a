"""The fit of the speed model: errors in its sample, with each configuration left out, and with each kind of work.

Twice: on all runs that ship with the tool, and on those of `h200_speed.jsonl` alone. Some ten minutes.
"""

from __future__ import annotations

import subprocess
import sys

from deployc.data import profiles

ROWS = profiles() / "calibration" / "rows"
STARTS = ROWS / "h200_memory.jsonl"


def main() -> int:
    """Print both; the exit code of the first that fails."""
    for runs in (["h200_speed.jsonl", "h200_more_speed.jsonl"], ["h200_speed.jsonl"]):
        print(f"\n== {', '.join(runs)}", flush=True)
        files = [str(ROWS / name) for name in runs]
        done = subprocess.run([sys.executable, "-m", "deployc", "calibrate", "fit", *files, str(STARTS)], check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
