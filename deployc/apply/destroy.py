"""Takes a deployment down on this host."""

from __future__ import annotations

import shutil

from deployc.apply import history, process, secrets
from deployc.apply.mutex import hold
from deployc.apply.state import Run, State, unusable
from deployc.diagnostics import Stop


def destroy(state: State, *, purge: bool = False) -> Run | None:
    """Stop what runs and forget its secrets; history, logs and cache stay unless `purge`. What was stopped, or None."""
    if not state.path.is_dir():
        return None
    state.make()
    with hold(state):
        stopped = process.stop(state)
        try:
            secrets.forget(state)  # before what a full disk refuses
            while (serving := history.last_serving(state)) is not None:
                history.settle(state, serving.entry, "destroyed")
            if purge:
                shutil.rmtree(state.path)
        except OSError as failure:
            raise Stop(unusable(state.path, failure)) from failure
    return stopped
