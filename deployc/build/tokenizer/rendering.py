"""Chat templates rendered for sample chats, in a bounded process (`sandbox.py`)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build.tokenizer.sandbox import SECONDS

_SANDBOX = Path(__file__).with_name("sandbox.py")
_WAIT = 60.0
"""Seconds by the clock, on a machine that is busy with something else; the bound itself is of processor time."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """`text`, or None and the `error` with the template's `line`; `raised`: the template refused the chat itself."""

    text: str | None
    error: str = ""
    line: int | None = None
    raised: bool = False


def render(jobs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Rendered]:
    """(template, variables) each rendered; where one breaks a bound, each by itself, so that it alone is blamed."""
    jobs = list(jobs)
    if not jobs:
        return []
    answer = _run(jobs)
    if isinstance(answer, list):
        return [
            Rendered(row.get("text"), row.get("error", ""), row.get("line"), row.get("raised", False)) for row in answer
        ]
    if len({template for template, _ in jobs}) == 1:
        return [Rendered(None, answer)] * len(jobs)
    found: dict[int, Rendered] = {}
    for template in dict.fromkeys(template for template, _ in jobs):
        places = [at for at, (of, _) in enumerate(jobs) if of == template]
        found |= zip(places, render([jobs[at] for at in places]), strict=True)
    return [found[at] for at in range(len(jobs))]


def _run(jobs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]] | str:
    """The process's answer, or why there is none."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_SANDBOX)],
            input=json.dumps(jobs), capture_output=True, text=True, timeout=_WAIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it does not end within {_WAIT:g} s"
    if done.returncode == 0:
        return list(json.loads(done.stdout))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it does not end within {SECONDS} s of processor time"
    last = done.stderr.strip().splitlines()[-1:]
    return ": ".join([f"the process that renders it ended with {done.returncode}", *last])
