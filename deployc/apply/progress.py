"""What an apply tells while it works; the command line shows it, a program may ignore it."""

from __future__ import annotations

from typing import Protocol

from deployc.types.plan import Step


class Progress(Protocol):
    """Called from the thread that applies."""

    def step(self, step: Step) -> None:
        """A step of the plan begins."""

    def say(self, text: str) -> None:
        """Something was done."""

    def waiting(self, elapsed: float, limit: float, line: str) -> None:
        """Still waiting for the engine, `elapsed` of at most `limit` seconds; `line` is the last of its log."""


class Silent:
    """Tells nothing."""

    def step(self, step: Step) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def waiting(self, elapsed: float, limit: float, line: str) -> None:
        """Nothing."""
