"""One engine for all tests of a real deployment: its start is what takes the time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_engine import AWKWARD, Deployment, Done, Fact, deployment, engine, make_model


@dataclass(frozen=True)
class Serving:
    """A deployment that was applied: what its plan and its apply said, and what its model was taught."""

    made: Deployment
    planned: Done
    applied: Done
    facts: list[Fact]


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """Of the engine environment."""
    prefix = engine()
    if prefix is None:
        needed = "no engine environment: `deployc engine install --cpu --version 0.32.0`, or set DEPLOYC_ENGINE"
        (pytest.fail if os.environ.get("DEPLOYC_REQUIRE_ENGINE") else pytest.skip)(needed)
    return prefix / "bin" / "python"


@pytest.fixture(scope="session")
def serving(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The demo's model, merged and int8, on the real engine; taken down at the end."""
    assert interpreter.exists()
    facts = make_model()
    made = deployment(tmp_path_factory.mktemp("engine") / AWKWARD)
    planned = made.deployc("plan", "--json")
    try:
        applied = made.deployc("apply", "--json")
        assert applied.code == 0, f"{applied.out}\n{applied.err}\n{made.deployc('logs', '-n', '60').out}"
        yield Serving(made, planned, applied, facts)
    finally:
        made.deployc("destroy", "--yes")
