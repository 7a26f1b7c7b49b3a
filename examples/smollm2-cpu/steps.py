"""The demo's steps: each is named, timed, finished all at once or not at all, and says how to go on when it fails."""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AGAIN = "make demo    (goes on from here: finished steps are not repeated)"


class StepFailed(Exception):
    """A step could not be done. `reason` says why, `go_on` what to do next."""

    def __init__(self, reason: str, go_on: str = AGAIN) -> None:
        super().__init__(reason)
        self.reason = reason
        self.go_on = go_on


class Steps:
    """Numbers and times the steps; `current` is the heading of the one that runs."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.current = ""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the step's heading, run it, print its seconds."""
        self.current = f"[{len(self.seconds) + 1}/{self.total}] {title}"
        say(f"\n{self.current}")
        began = time.monotonic()
        yield
        self.seconds[title] = time.monotonic() - began
        say(f"      {self.seconds[title]:.1f} s")


def say(text: str) -> None:
    """One line for the person who watches, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def key_of(*parts: str | Path) -> str:
    """One sha256 over texts and the contents of files: what an output was made from."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _marker(output: Path) -> Path:
    return output.with_name(output.name + ".finished")


def finished(output: Path, key: str) -> bool:
    """Whether `output` was finished from the same inputs: it is there, and its marker holds their key."""
    marker = _marker(output)
    return output.exists() and marker.exists() and marker.read_text() == key


@contextmanager
def making(output: Path, key: str) -> Iterator[Path]:
    """Hands out an empty folder beside `output`; at the end it is renamed to `output` and marked finished.

    Whatever stops in between leaves no marker, so that the next run makes this output afresh.
    """
    part = output.with_name(output.name + ".part")
    _marker(output).unlink(missing_ok=True)
    for left in (part, output):
        shutil.rmtree(left, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    part.rename(output)
    mark = _marker(output).with_suffix(".part")
    mark.write_text(key)
    mark.rename(_marker(output))
