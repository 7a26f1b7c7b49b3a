"""The plan: what is, what would be done and why. Its JSON form is the contract; every view reads that form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from deployc.types.quality import Quality

Action = Literal["build", "create", "replace", "update", "delete", "keep", "verify"]


@dataclass(frozen=True, slots=True)
class Observed:
    """What runs on the target now. `complete` False = it could not or was not to be looked at.

    `flags`, `env`, `paths` and `engine` are those of the running launch, kept at its start, to name what changes;
    empty where they were not kept. `flags` maps a flag's name to its value, "" for a bare switch.
    """

    digest: str | None  # of the bundle that runs; None = nothing runs
    at: str | None  # when it was looked at, ISO 8601 UTC; None where it was not
    complete: bool
    healthy: bool | None = None
    artifact: bool | None = None  # is the recipe's artifact in the store
    quality: Quality | None = None  # of that artifact, where it was measured
    flags: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""  # version
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """How the new engine takes over: gap in seconds, expected and worst case; None where unknown."""

    strategy: Literal["none", "first", "stop-first", "unknown"]
    gap_seconds: float | None
    worst_case: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing `apply` would do. `cause` in words, `at` the place in the file it hangs on, `needs` ids before it."""

    id: str
    action: Action
    target: str
    cause: str
    at: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan document of docs/reference.md, as values; `document` is its JSON form, keys in order."""

    document: Mapping[str, Any]
    steps: tuple[Step, ...]
    changes: bool
