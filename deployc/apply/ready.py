"""Waits until a started engine serves, and says why where it does not."""

from __future__ import annotations

import time
from pathlib import Path

from deployc.apply import causes, history, ports, process
from deployc.apply.health import Unhealthy, live, verify
from deployc.apply.identity import alive, session
from deployc.apply.logfile import since_start
from deployc.apply.progress import Progress
from deployc.apply.state import Run, State, read_run
from deployc.diagnostics import Diagnostic, Report, Stop, error
from deployc.units import show_seconds

_SHOWN_LINES = 30
_READ_LINES = 2000
_ASKED_EVERY, _TOLD_EVERY = 0.1, 1.0
_ANSWER = 60.0  # seconds for one completion: a slow engine on a CPU needs some


def await_ready(state: State, entry: str, progress: Progress) -> float:
    """Seconds until the engine of an entry was verified: /health, its name, one completion. Stop where it is not."""
    start, endpoint = history.start(state, entry), process.endpoint(state, entry)
    log, began, told = Path(start.log), time.monotonic(), 0.0
    while True:
        elapsed = time.monotonic() - began
        run = read_run(state)
        if run is None or run.entry != entry or run.phase == "failed" or not alive(run.supervisor):
            raise Stop(_ended(run.reason if run and run.reason else "stopped by someone else", elapsed, log))
        try:
            if live(endpoint):
                _ours(run, start.port)
                verify(endpoint, max(_ANSWER, start.health_timeout - elapsed))
                return time.monotonic() - began
            why = f"GET {endpoint.url}/health does not answer 200"
        except Unhealthy as failure:
            why = str(failure)
            if failure.final:
                raise Stop(_wrong(why, log)) from failure
        if elapsed > start.health_timeout:
            raise Stop(_late(why, start.health_timeout, log))
        if elapsed - told >= _TOLD_EVERY:
            told = elapsed
            lines = since_start(log, 1)
            progress.waiting(elapsed, start.health_timeout, lines[0] if lines else "")
        time.sleep(_ASKED_EVERY)


def _ours(run: Run, port: int) -> None:
    """Whether it is this engine that answers, and not another that took the port while it started."""
    holders = set(ports.holders(port))
    if holders and run.engine is not None and not holders & {p.pid for p in session(run.engine)}:
        raise Unhealthy(f"on port {port} answers {ports.describe(port)}, not the engine", final=True)


def _ended(reason: str, elapsed: float, log: Path) -> Report:
    lines = since_start(log, _READ_LINES)
    detail = f"{reason}, {show_seconds(elapsed)} after its start{_shown(lines, log)}"
    fix = f"the whole log is {log}"
    return _with_cause(error("DC640", "The engine ended before it served", detail, fix), lines, reason)


def _late(why: str, limit: float, log: Path) -> Report:
    lines = since_start(log, _READ_LINES)
    detail = f"after {show_seconds(limit)}: {why}{_shown(lines, log)}"
    fix = "if it was only slow, raise rollout.health_timeout"
    return _with_cause(error("DC641", "The engine did not serve in time", detail, fix), lines, "")


def _wrong(why: str, log: Path) -> Report:
    lines = since_start(log, _READ_LINES)
    fix = "compare api.served_model_name and engine.args with what the log says"
    return Report([error("DC628", "The engine does not answer as it should", f"{why}{_shown(lines, log)}", fix)])


def _with_cause(failure: Diagnostic, lines: list[str], ending: str) -> Report:
    cause = causes.find(lines, ending)
    return Report([failure, cause] if cause else [failure])


def _shown(lines: list[str], log: Path) -> str:
    if not lines:
        return f"\n{log.name} is empty"
    return f"\nthe last lines of {log.name}:\n" + "\n".join(f"  {line[:400]}" for line in lines[-_SHOWN_LINES:])
