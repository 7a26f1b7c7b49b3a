"""Stop-first: the old engine goes, the new one comes, and where it does not serve the old one is put back."""

from __future__ import annotations

from collections.abc import Mapping

from deployc.apply import history, process, secrets
from deployc.apply.history import Receipt, Start
from deployc.apply.identity import alive
from deployc.apply.progress import Progress
from deployc.apply.ready import await_ready
from deployc.apply.state import State, now, unusable
from deployc.diagnostics import ExitCode, Report, Stop, error, note, warning
from deployc.types.bundle import Bundle
from deployc.units import show_seconds


class Switch:
    """One change of engines. Nothing is stopped before `start`; `undo` leads back from anywhere after it."""

    def __init__(self, state: State, env: Mapping[str, str], progress: Progress, keep: int) -> None:
        self.state, self.env, self.progress, self.keep = state, env, progress, keep
        self.before = history.last_serving(state)
        self.entry: str | None = None
        self.touched = False
        self.verified = False

    def start(self, bundle: Bundle, start: Start, values: Mapping[str, str], engine_version: str) -> None:
        """Write the new entry, stop what runs, start the new engine."""
        (launch,) = bundle.launches
        receipt = Receipt(
            entry=history.next_entry(self.state, bundle.digest),
            digest=bundle.digest,
            name=bundle.name,
            engine=engine_version,
            artifact=bundle.recipe.key if bundle.recipe else None,
            started=now(),
            flags={flag.name: flag.value or "" for flag in launch.flags},
            env=dict(launch.env),
            paths=dict(launch.paths),
        )
        self.entry = receipt.entry
        history.begin(self.state, bundle, start, receipt)
        secrets.store(self.state, receipt.entry, values)
        self.touched = True
        if stopped := process.stop(self.state):
            self.progress.say(f"stopped {stopped.entry}")
        run = process.launch(self.state, receipt.entry, self.env)
        self.progress.say(f"started {receipt.entry} under supervisor {run.supervisor.pid}, log {start.log}")

    def verify(self) -> Receipt:
        """Wait until the new engine serves; then it is what ought to serve, and older things are cleared away."""
        if self.entry is None:
            raise ValueError("a plan verifies what it started")
        seconds = await_ready(self.state, self.entry, self.progress)
        receipt = history.settle(self.state, self.entry, "serving", seconds=seconds)
        self.verified = True
        if self.before is not None:
            history.settle(self.state, self.before.entry, "replaced")
        secrets.forget(self.state, but=(self.entry,))
        history.collect(self.state, self.keep, spare=(self.entry,))
        self.progress.say(f"{receipt.entry} serves, {show_seconds(seconds)} after its start")
        return receipt

    def undo(self, failure: BaseException) -> Stop:
        """Stop the new engine, put back what was serving before, and tell both outcomes. Once verified, it stays."""
        told = _told(failure, self.state)
        if self.entry is None or self.verified:
            return told
        outcome: history.Outcome = "interrupted" if told.exit_code == ExitCode.INTERRUPTED else "failed"
        report = told.report
        try:
            report.extend(self._put_back())  # first of all: a full disk may allow nothing after it
            if history.receipt(self.state, self.entry) is not None:
                history.settle(self.state, self.entry, outcome, reason=str(told))
        except OSError as full:
            report.add(unusable(self.state.path, full))
        return Stop(report, told.exit_code)

    def _put_back(self) -> Report:
        before = self.before
        if not self.touched:
            run = process.running(self.state)
            if before is None or run is None or run.entry != before.entry or not alive(run.engine):
                return Report()
            return Report([note("DC645", "What ran before serves", f"{before.entry} was not touched")])
        process.stop(self.state)
        secrets.forget(self.state, but=(before.entry,) if before else ())
        if before is None:
            return Report([note("DC647", "Nothing runs now", "nothing was serving before that could be put back")])
        self.progress.say(f"putting back {before.entry}")
        try:
            process.launch(self.state, before.entry, self.env)
            seconds = await_ready(self.state, before.entry, self.progress)
        except Stop as failure:
            detail = f"{before.entry}; nothing healthy runs now"
            fix = "mend what is named above and apply again"
            return Report([*failure.report, error("DC646", "What ran before could not be put back", detail, fix)])
        detail = f"{before.entry} was put back and verified {show_seconds(seconds)} after its start"
        return Report([note("DC645", "What ran before serves", detail)])


def _told(failure: BaseException, state: State) -> Stop:
    """Whatever went wrong, as diagnostics and an exit code."""
    if isinstance(failure, Stop):
        return failure
    if isinstance(failure, OSError):
        return Stop(unusable(state.path, failure))
    if isinstance(failure, KeyboardInterrupt):
        return Stop(warning("DC644", "Interrupted", "before the new engine was verified"), ExitCode.INTERRUPTED)
    raise failure
