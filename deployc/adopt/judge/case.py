"""What a rule over launches is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deployc.adopt.deploy import has_key
from deployc.adopt.engine import Engine, is_official
from deployc.cost.written import as_count
from deployc.diagnostics import Diagnostic, Span
from deployc.types.launch import FoundLaunch, Piece

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hr|h|days?|d)?")
_SECONDS = {"u": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Judged:
    """One launch and the version that it runs."""

    launch: FoundLaunch
    engine: Engine

    @property
    def official(self) -> bool:
        """Whether the image is vLLM's own, as it is or as the base of a Dockerfile."""
        return is_official(self.launch)

    @property
    def keyed(self) -> bool:
        """Whether requests need a key, as far as the text says; a file of variables may hold one."""
        return has_key(self.launch) or bool(self.launch.env_files)

    @property
    def ranks(self) -> int:
        """Processes that hold a part of the model each, on this machine."""
        tensor, pipeline = (self.count(name, 1) for name in ("tensor-parallel-size", "pipeline-parallel-size"))
        return tensor * pipeline * self.count("data-parallel-size", 1)

    def count(self, name: str, unset: int) -> int:
        """A flag that is a whole number, by any of its spellings; `unset` where it is not there or no number."""
        flags = [flag for flag in self.launch.flags if self.engine.facts.canonical(flag.name) == name]
        value = as_count(flags[-1].value) if flags else None
        return unset if value is None else value

    def share(self, name: str) -> tuple[float, Span] | None:
        """A flag that is a number, and where it stands."""
        for flag in reversed(self.launch.flags):
            if self.engine.facts.canonical(flag.name) == name:
                try:
                    return float(flag.text), flag.at
                except ValueError:
                    return None
        return None


LaunchRule = Callable[[Judged], Iterable[Diagnostic]]
FileRule = Callable[[Sequence[Judged]], Iterable[Diagnostic]]
"""Over all launches of one file: they share cards."""


def seconds(piece: Piece | None) -> float | None:
    """A duration as Docker ("1m30s") and systemd ("5min", "infinity", bare seconds) write it; None where it is none."""
    if piece is None:
        return None
    text = piece.value.strip().lower()
    if text == "infinity":
        return float("inf")
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        return None
    return sum(float(number) * _SECONDS["ms" if unit == "ms" else unit[:1] or "s"] for number, unit in parts)


def gibibytes(text: str) -> float | None:
    """A size as Docker writes it ("1g", "64m", "16gb") in GiB; None where it is none."""
    found = re.match(r"(\d{1,12}(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?\Z", text.strip().lower())
    if found is None:
        return None
    return float(found[1]) * {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}[found[2]] / 2**30
