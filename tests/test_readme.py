"""What the README shows is what the tool prints: `DEPLOYC_UPDATE=1` puts the present output in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
QUICKSTART = ROOT / "examples" / "quickstart"


def plan(name: str) -> subprocess.CompletedProcess[str]:
    """`deployc plan --offline` on a file of the quick start, run from the checkout as the README says."""
    command = [sys.executable, "-m", "deployc", "plan", "--offline", "-f", f"examples/quickstart/{name}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def blocks() -> dict[str, str]:
    """The three blocks as they should be: the file, its plan, and the errors of the wrong one."""
    good, wrong = plan("deploy.yaml"), plan("too-long.yaml")
    assert (good.returncode, wrong.returncode) == (0, 3), good.stderr + wrong.stderr
    errors = wrong.stdout[wrong.stdout.index("error[") :].split("\n\nnote[")[0]
    return {"YAML": (QUICKSTART / "deploy.yaml").read_text().strip(), "PLAN": good.stdout.strip(), "WRONG": errors}


def test_the_readme_shows_what_the_tool_prints() -> None:
    text, shown = README.read_text(), blocks()
    fences = re.findall(r"^```\w*\n(.*?)\n^```$", text, re.DOTALL | re.MULTILINE)
    if os.environ.get("DEPLOYC_UPDATE"):
        for old, new in zip(fences, shown.values(), strict=False):
            text = text.replace(old, new, 1)
        README.write_text(text)
        return
    assert fences[:3] == list(shown.values())


def test_the_file_has_twelve_lines_and_the_wrong_one_differs_in_one() -> None:
    good, wrong = ((QUICKSTART / n).read_text().splitlines() for n in ("deploy.yaml", "too-long.yaml"))
    assert len(good) == 12
    assert sum(a != b for a, b in zip(good, wrong, strict=True)) == 1


def test_the_commands_of_the_readme_exist() -> None:
    from deployc.cli.main import COMMANDS

    named = set(re.findall(r"[`\n]deployc ([a-z]+)", README.read_text()))
    assert named <= set(COMMANDS), named - set(COMMANDS)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^)make ([a-z]+)", README.read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
