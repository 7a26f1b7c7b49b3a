"""How an apply tells of itself: a line a step, and one line that moves while the engine starts."""

from __future__ import annotations

import sys

from deployc.cli.options import Style
from deployc.cli.progress import json_line
from deployc.cli.show import write
from deployc.types.plan import Step

_EVERY = 10.0
"""Seconds between lines where there is no terminal to redraw one."""


class Telling:
    """Writes to standard error. Implements `deployc.apply.progress.Progress`."""

    def __init__(self, style: Style = Style.AUTO) -> None:
        self.style = style.on(sys.stderr)
        self.open = False
        self.next = 0.0

    def step(self, step: Step) -> None:
        """A step begins."""
        self.next = 0.0
        self._tell("step", f"{step.action} {step.target}: {step.cause}")

    def say(self, text: str) -> None:
        """A line of its own."""
        self._tell("note", text)

    def waiting(self, elapsed: float, limit: float, line: str) -> None:
        """Time and the engine's last word."""
        redraws = self.style is Style.BAR
        if self.style is Style.NONE or (not redraws and elapsed < self.next):
            return
        self.next = elapsed + _EVERY
        if self.style is Style.JSON:
            write(sys.stderr, json_line("start", round(elapsed, 1), round(limit, 1), "seconds", line) + "\n")
            return
        shown = f"  {elapsed:.0f} s of at most {limit:.0f} s: {line}"[:100]
        write(sys.stderr, f"\r\x1b[K{shown}" if redraws else f"{shown}\n")
        self.open = redraws

    def close(self) -> None:
        """End the line that moves."""
        if self.open:
            write(sys.stderr, "\n")
            self.open = False

    def _tell(self, phase: str, text: str) -> None:
        self.close()
        if self.style is Style.JSON:
            write(sys.stderr, json_line(phase, 0, None, None, text) + "\n")
        elif self.style is not Style.NONE:
            write(sys.stderr, f"{text}\n")
