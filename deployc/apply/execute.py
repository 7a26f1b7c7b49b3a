"""Walks exactly the steps of a plan, under the deployment's mutex."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deployc.apply import history, preflight, process, secrets
from deployc.apply.health import Endpoint
from deployc.apply.history import Receipt
from deployc.apply.mutex import hold
from deployc.apply.observe import observe
from deployc.apply.preflight import Ready
from deployc.apply.progress import Progress
from deployc.apply.state import State, locate
from deployc.apply.switch import Switch
from deployc.diagnostics import ExitCode, Report, Stop, error, warning
from deployc.emit.timing import timing
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle, Recipe
from deployc.types.plan import Plan
from deployc.types.prediction import Prediction

SLACK = 1.5
"""Where `rollout.health_timeout` is auto, an engine may take this many times the planned start …"""

AT_LEAST = 300.0
"""… and at least this many seconds: an engine that dies is seen at once, only one that hangs costs the wait."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that acting needs besides the plan. `folder` holds the deploy.yaml, `store` the artifacts."""

    deploy: Deploy
    bundle: Bundle
    prediction: Prediction
    folder: Path
    store: Path
    env: Mapping[str, str]
    build: Callable[[Recipe], object]  # makes the recipe's artifact in the store, or raises Stop

    @property
    def state(self) -> State:
        """The deployment's state folder."""
        return locate(self.deploy, self.folder, self.env)

    @property
    def drain_timeout(self) -> float:
        """Seconds an engine that is stopped has for its requests."""
        return float(timing(self.deploy, self.prediction).drain)

    @property
    def health_timeout(self) -> float:
        """Seconds an engine has from its start to its first verified answer."""
        planned = float(timing(self.deploy, self.prediction, self.bundle.downloads).start)
        return max(AT_LEAST, SLACK * planned) if self.deploy.rollout.health_timeout == "auto" else planned


@dataclass(frozen=True, slots=True)
class Applied:
    """What runs now. `changed` = this apply started it; `report` holds what is worth knowing."""

    changed: bool
    receipt: Receipt
    endpoint: Endpoint
    report: Report


def execute(plan: Plan, job: Job, progress: Progress) -> Applied:
    """Make the plan true. Stop where that cannot be: before anything was touched, or with the old engine put back."""
    state = job.state
    state.make()
    with hold(state), _interruptible():
        if all(step.action == "keep" for step in plan.steps):
            return _keep(plan, job, state, progress)
        builds = any(step.action == "build" for step in plan.steps)
        ready, report = preflight.check(job.deploy, job.bundle, job.folder, job.store, state, job.env, builds=builds)
        if ready is None:
            raise Stop(report)
        switch = Switch(state, job.env, progress, job.deploy.rollout.keep)
        try:
            receipt = _walk(plan, job, ready, switch, progress)
        except (Stop, OSError, KeyboardInterrupt) as failure:
            raise switch.undo(failure) from failure
        return Applied(True, receipt, process.endpoint(state, receipt.entry), report)


def _walk(plan: Plan, job: Job, ready: Ready, switch: Switch, progress: Progress) -> Receipt:
    receipt = None
    for step in plan.steps:
        progress.step(step)
        if step.action == "build" and job.bundle.recipe is not None:
            job.build(job.bundle.recipe)
            again, report = preflight.check(
                job.deploy, job.bundle, job.folder, job.store, switch.state, job.env, builds=False
            )
            if again is None:
                raise Stop(report)
        elif step.action in ("create", "replace", "update"):
            start = process.real_start(
                job.bundle, ready.launch, ready.places, ready.engine, switch.state,
                drain=job.drain_timeout, health=job.health_timeout,
            )  # fmt: skip
            switch.start(job.bundle, start, ready.secrets, job.deploy.engine.version)
        elif step.action == "verify":
            receipt = switch.verify()
    if receipt is None:
        raise ValueError("a plan that changes something ends with a step that verifies it")
    return receipt


def _keep(plan: Plan, job: Job, state: State, progress: Progress) -> Applied:
    for step in plan.steps:
        progress.step(step)
    seen, run = observe(job.bundle, state, job.store), process.running(state)
    receipt = history.receipt(state, run.entry) if run else None
    if seen.digest != job.bundle.digest or not seen.healthy or run is None or receipt is None:
        detail = f"the plan keeps {job.bundle.digest}; now {seen.digest or 'nothing'} runs. {seen.detail}"
        stale = error("DC648", "What runs is no longer what the plan saw", detail, "plan again")
        raise Stop(stale, ExitCode.REFUSED)
    report = Report()
    given = secrets.kept(state, run.entry)
    values, _ = secrets.resolve(job.bundle.launches[0].secrets, job.folder, job.env)
    for name, value in values.items():
        if given.get(name) != value:
            detail = f"the engine was started with another value of {name}; a secret is no part of the digest"
            report.add(warning("DC629", "A secret has changed since the engine was started", detail,
                               "`deployc destroy`, then apply: the engine reads it at its start"))  # fmt: skip
    return Applied(False, receipt, process.endpoint(state, run.entry), report)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a lost terminal interrupt like Ctrl-C, so that they too leave something that serves."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
