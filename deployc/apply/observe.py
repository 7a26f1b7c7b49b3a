"""What runs on this host now: for the plan in the plan's terms, for people with all there is to say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deployc.apply import history, logfile, process
from deployc.apply.health import live
from deployc.apply.identity import alive, resident_bytes, session
from deployc.apply.state import Run, State, now
from deployc.build.store import artifact_for
from deployc.diagnostics import Stop, error
from deployc.types.bundle import Bundle
from deployc.types.plan import Observed

Condition = Literal["nothing", "starting", "serving", "unhealthy", "restarting", "failed", "gone"]
"""`gone`: run.json names an engine, and neither it nor its supervisor lives; `failed`: given up, its reason is kept."""


@dataclass(frozen=True, slots=True)
class Status:
    """One deployment on this host. Times ISO 8601 UTC, memory in bytes; None where it does not apply."""

    condition: Condition
    digest: str | None = None
    entry: str | None = None
    since: str | None = None  # start of the process that runs
    url: str | None = None
    served_name: str | None = None
    engine: str | None = None  # version
    pid: int | None = None
    supervisor: int | None = None
    restarts: int = 0
    resident_bytes: int | None = None
    reason: str = ""  # why it is not serving, or why it last ended
    log: str | None = None
    log_tail: tuple[str, ...] = ()  # where it is not serving


def status(state: State, *, timeout: float = 1.0) -> Status:
    """What runs, and in what condition; asks /health once, for at most `timeout` seconds."""
    run = process.running(state)
    if run is None:
        return Status("nothing")
    start, receipt = history.start(state, run.entry), history.receipt(state, run.entry)
    condition, reason = _condition(state, run, receipt.outcome if receipt else "starting", timeout)
    living = session(run.engine) if run.engine else []
    return Status(
        condition=condition,
        digest=run.digest,
        entry=run.entry,
        since=run.since,
        url=process.endpoint(state, run.entry).url,
        served_name=start.served_name,
        engine=receipt.engine if receipt else None,
        pid=run.engine.pid if alive(run.engine) and run.engine else None,
        supervisor=run.supervisor.pid if alive(run.supervisor) else None,
        restarts=run.restarts,
        resident_bytes=resident_bytes(living) if living else None,
        reason=reason,
        log=start.log,
        log_tail=() if condition == "serving" else tuple(logfile.since_start(Path(start.log), 10)),
    )


def logs(state: State, *, lines: int, follow: bool) -> Iterator[str]:
    """The last lines of the log of what runs, or of what was applied last; followed until that has ended."""
    run = process.running(state)
    applied = history.entries(state)
    if run is None and not applied:
        raise Stop(error("DC647", "Nothing runs now", f"{state.path}: nothing was ever applied", "`deployc apply`"))
    log = Path(history.start(state, run.entry if run else applied[-1]).log)
    return (
        logfile.follow(log, lines, lambda: not process.supervised(state)) if follow else iter(logfile.tail(log, lines))
    )


def observe(bundle: Bundle | None, state: State, store: Path) -> Observed:
    """What the plan compares with. An engine whose apply did not finish counts as unhealthy: nobody verified it."""
    recipe = None if bundle is None else bundle.recipe
    built = None if recipe is None else artifact_for(store, recipe.key)
    artifact, quality = None if recipe is None else built is not None, built.manifest.quality if built else None
    seen = status(state)
    receipt = history.receipt(state, seen.entry) if seen.entry else None
    if receipt is None or seen.condition in ("nothing", "gone", "failed"):
        return Observed(None, now(), complete=True, artifact=artifact, quality=quality, detail=seen.reason)
    return Observed(
        digest=receipt.digest,
        at=now(),
        complete=True,
        healthy=seen.condition == "serving",
        artifact=artifact,
        quality=quality,
        flags=receipt.flags,
        env=receipt.env,
        paths=receipt.paths,
        engine=receipt.engine,
        detail=seen.reason,
    )


def _condition(state: State, run: Run, outcome: history.Outcome, timeout: float) -> tuple[Condition, str]:
    if run.phase == "failed":
        return "failed", run.reason
    if not alive(run.supervisor):
        left = "; its engine still ends" if alive(run.engine) else ""
        return "gone", f"supervisor {run.supervisor.pid} is gone (killed, or the host was restarted){left}"
    if run.phase == "restarting" or run.engine is None:
        return "restarting", run.reason
    healthy = live(process.endpoint(state, run.entry), timeout)
    if outcome != "serving":
        return "starting", "started by an apply that is at work or was cut off before it verified the engine"
    if not healthy:
        return "unhealthy", f"/health does not answer 200 within {timeout:g} s"
    return "serving", run.reason
