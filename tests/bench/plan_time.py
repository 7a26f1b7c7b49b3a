"""How long `deployc plan --offline` takes as a whole process, over the import of the libraries it stands on.

The bound of the project is 3: a third of the time goes into making some 190 types of values as modules are imported, a
sixth into the plan itself, simulations included. Baseline and plan run in turn, so that other load hits both alike,
and the least of each is compared: what else runs on the machine can only add. The first run writes byte code, as an
installation does: where the environment forbids that, it is allowed here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "qwen2.5-7b-lora-rtx4090" / "deploy.yaml"
BASELINE = [sys.executable, "-c", "import pydantic, ruamel.yaml, jinja2, typer, rich"]
PLAN = [sys.executable, "-m", "deployc", "plan", "--offline", "-f", str(EXAMPLE)]
BOUND = 3.0
ROUNDS = 20
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(command: list[str]) -> float:
    """Wall seconds of one run; a failing command is a failing benchmark."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return time.perf_counter() - began


def main() -> int:
    seconds(BASELINE), seconds(PLAN)
    pairs = [(seconds(BASELINE), seconds(PLAN)) for _ in range(ROUNDS)]
    baseline, plan = (min(column) for column in zip(*pairs, strict=True))
    ratio = plan / baseline
    print(f"plan --offline {plan * 1000:.0f} ms / imports {baseline * 1000:.0f} ms = {ratio:.2f} (bound {BOUND})")
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
