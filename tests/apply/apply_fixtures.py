"""Fixtures of apply: a bench whose engines are stopped when the test is over."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from apply_bench import Bench, make_bench

from deployc.apply import process


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A deployment in a short temporary folder, restarts without long pauses."""
    monkeypatch.setattr(process, "BACKOFF", (0.05, 0.1, 0.15))
    root = Path(tempfile.mkdtemp(prefix="apply-"))
    made = make_bench(root)
    yield made
    if made.state.path.exists():
        process.stop(made.state)
    shutil.rmtree(root)
