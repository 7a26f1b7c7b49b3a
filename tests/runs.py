"""How many runs the cost model simulates."""

from __future__ import annotations

from typing import Any

import pytest

from deployc.cost.simulate import Load, Trace, simulate


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Load]:
    """The loads that are simulated from now on, as they come."""
    runs: list[Load] = []

    def counting(load: Load, *rest: Any, **more: Any) -> Trace:
        runs.append(load)
        trace: Trace = simulate(load, *rest, **more)
        return trace

    monkeypatch.setattr("deployc.cost.engine.simulate", counting)
    return runs
