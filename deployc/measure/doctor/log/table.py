"""What is known of the engine's texts, from profiles/engines/: failures.json and log_lines.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from deployc.facts.codec import decode
from deployc.facts.engine_table import engine_table
from deployc.types.lore import Gone


@dataclass(frozen=True, slots=True)
class Failure:
    """A row of failures.json, which says what each field is."""

    name: str
    code: str
    pattern: re.Pattern[str]
    source: str
    since: str = ""
    until: str = ""
    fix: str = ""
    serving: bool = False
    host: bool = False

    @property
    def names_vllm(self) -> bool:
        """Whether the text alone says that the log is of vLLM, or of what was to start it."""
        return self.host or self.source.startswith("vllm/")


@dataclass(frozen=True, slots=True)
class Figures:
    """A line that says something of the engine: named groups of `pattern` are facts, numbers where `units` has them."""

    has: str  # a text that the line must have, looked for first because that is quick
    pattern: re.Pattern[str]
    units: Mapping[str, str]
    source: str


@dataclass(frozen=True, slots=True)
class Table:
    """Patterns over one line each."""

    failures: tuple[Failure, ...]
    figures: tuple[Figures, ...]
    vllm: re.Pattern[str]  # only vLLM prints that
    others: Mapping[str, re.Pattern[str]]  # name of another server -> what only it prints
    start: re.Pattern[str]  # the first words of a start
    serving: re.Pattern[str]  # the start has come to its end
    died: re.Pattern[str]  # an engine that served has ended by a fault
    stopped: re.Pattern[str]  # somebody told it to end
    follows: re.Pattern[str]  # says that something failed, and not what


@cache
def table() -> Table:
    """Read once; ships with the tool."""
    known, marks = engine_table("failures.json")["failures"], engine_table("log_lines.json")
    failures = tuple(Failure(**{**row, "pattern": re.compile(row["pattern"])}) for row in known)
    figures = tuple(Figures(**{**row, "pattern": re.compile(row["pattern"])}) for row in marks["figures"])
    others = {row["name"]: re.compile(row["pattern"]) for row in marks["others"]}
    single = {
        name: re.compile(marks[name]["pattern"]) for name in ("vllm", "start", "serving", "died", "stopped", "follows")
    }
    return Table(failures, figures, others=others, **single)


@cache
def gone() -> Mapping[str, Gone]:
    """Flags that went with some version, whether or not the name has come again since."""
    return decode(dict[str, Gone], engine_table("gone.json")["flags"])
