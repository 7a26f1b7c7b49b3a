"""How an apply tells of itself: a line a step, and one line that moves while the engine starts."""

from __future__ import annotations

import sys

from deployc.types.plan import Step

_EVERY = 10.0
"""Seconds between lines where there is no terminal to redraw one."""


class Telling:
    """Writes to standard error. Implements `deployc.apply.progress.Progress`."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.redraws = sys.stderr.isatty()
        self.open = False
        self.next = 0.0

    def step(self, step: Step) -> None:
        """A step begins."""
        self.next = 0.0
        self.say(f"{step.action} {step.target}: {step.cause}")

    def say(self, text: str) -> None:
        """A line of its own."""
        self.close()
        if not self.quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def waiting(self, elapsed: float, limit: float, line: str) -> None:
        """Time and the engine's last word."""
        if self.quiet or (not self.redraws and elapsed < self.next):
            return
        self.next = elapsed + _EVERY
        shown = f"  {elapsed:.0f} s of at most {limit:.0f} s: {line}"[:100]
        sys.stderr.write(f"\r\x1b[K{shown}" if self.redraws else f"{shown}\n")
        sys.stderr.flush()
        self.open = self.redraws

    def close(self) -> None:
        """End the line that moves."""
        if self.open:
            sys.stderr.write("\n")
            self.open = False
