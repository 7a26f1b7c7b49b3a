"""`python -m deployc.apply.supervise ENTRY`: keeps one engine, of one history entry, until it is told to stop.

It has its own session and no terminal, and holds `supervisor.lock` by a descriptor it inherited, so that the kernel
tells whether it lives. It alone writes run.json. An engine that was never verified is not restarted: its apply
wants to know at once; a verified one is, as often as its start says, with growing pauses. The engine dies with it.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from deployc.apply import history, secrets
from deployc.apply.identity import Identity, boot_id, identify, kill_session
from deployc.apply.logfile import STARTING, LogFile
from deployc.apply.state import Run, State, now

_SETTLED = 600.0  # seconds of running after which earlier crashes no longer count
_PR_SET_PDEATHSIG = 1  # prctl(2)
_STOP = (signal.SIGTERM, signal.SIGINT)


class Supervisor:
    """One engine: started, logged, restarted, stopped. Single-threaded; signals wake its one wait."""

    def __init__(self, entry: Path) -> None:
        self.state = State(entry.parent.parent)
        self.start = history.start(self.state, entry.name)
        self.secrets = secrets.kept(self.state, entry.name)
        os.chdir(self.state.path)
        self.log = LogFile(Path(self.start.log), self.secrets.values())
        self.stopping = False
        self.restarts = 0
        me = identify(os.getpid())
        receipt = history.receipt(self.state, entry.name)
        if me is None or receipt is None:
            raise SystemExit(f"{entry}: no receipt, or no /proc to identify this process by")
        self.run = Run(entry.name, receipt.digest, "running", me, None, now(), self.start.drain_timeout)
        self.run.write(self.state)
        self._waker, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker, selectors.EVENT_READ)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in _STOP:
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that a child's end wakes the wait

    def supervise(self) -> int:
        """Run the engine until stopped (then run.json goes: nothing runs) or given up (then it says why)."""
        while not self.stopping:
            began = time.monotonic()
            reason = self._once()
            if self.stopping:
                break
            if time.monotonic() - began > _SETTLED:
                self.restarts = 0
            pause = self._pause_before_restart()
            if pause is None:
                self._give_up(reason)
                return 1
            self.restarts += 1
            self._note(replace(self.run, phase="restarting", engine=None, restarts=self.restarts, reason=reason))
            self.log.say(f"{reason}; restart {self.restarts} of {len(self.start.backoff)} in {pause:.0f} s")
            again = time.monotonic() + pause
            while not self.stopping and time.monotonic() < again:
                self._wait(again)
        self.log.say("stopped")
        self.state.run.unlink(missing_ok=True)
        return 0

    def _once(self) -> str:
        """Start the engine and stay with it to its end; why it ended."""
        self.log.say(f"{STARTING} {self.run.entry}")
        try:
            engine = subprocess.Popen(
                self.start.argv,
                env={**os.environ, **self.start.env, **self.secrets},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509  safe: this process has one thread
            )
        except OSError as failure:
            return f"could not be started: {self.start.argv[0]}: {failure.strerror}"
        identity = identify(engine.pid) or Identity(engine.pid, 0, boot_id())
        self._note(replace(self.run.with_engine(identity), phase="running", restarts=self.restarts))
        code = self._stay(engine, cast(IO[bytes], engine.stdout), identity)
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def _stay(self, engine: subprocess.Popen[bytes], output: IO[bytes], identity: Identity) -> int:
        """Log what the engine says; on a stop, SIGTERM to it and after the drain timeout SIGKILL to all of it."""
        self._selector.register(output, selectors.EVENT_READ)
        deadline: float | None = None
        while engine.poll() is None:
            if self.stopping and deadline is None:
                engine.terminate()
                deadline = time.monotonic() + self.start.drain_timeout
            elif deadline is not None and time.monotonic() >= deadline:
                self.log.say(f"still running {self.start.drain_timeout:.0f} s after SIGTERM: killed")
                kill_session(identity)
                deadline = time.monotonic() + 1
            self._wait(deadline)
        kill_session(identity)  # workers that outlived it would hold its memory
        end = time.monotonic() + 1
        while len(self._selector.get_map()) > 1 and time.monotonic() < end:
            self._wait(end)  # its last words
        with suppress(KeyError):
            self._selector.unregister(output)
        output.close()
        self.log.flush()
        return engine.returncode

    def _wait(self, deadline: float | None) -> None:
        """Wait once for output, a signal or the deadline (by the monotonic clock); log the output."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        for key, _ in self._selector.select(left):
            data = os.read(key.fd, 2**16)
            if key.fd == self._waker:
                continue
            self.log.write(data)
            if not data:
                self._selector.unregister(key.fileobj)

    def _pause_before_restart(self) -> float | None:
        receipt = history.receipt(self.state, self.run.entry)
        verified = receipt is not None and receipt.outcome == "serving"
        return self.start.backoff[self.restarts] if verified and self.restarts < len(self.start.backoff) else None

    def _give_up(self, reason: str) -> None:
        if self.restarts:
            reason = f"{reason}; given up after {self.restarts} restarts"
        self.log.say(reason)
        self._note(replace(self.run, phase="failed", engine=None, reason=reason))

    def _note(self, run: Run) -> None:
        self.run = run
        try:
            run.write(self.state)
        except OSError as failure:  # a full disk must not take the engine down
            self.log.say(f"{self.state.run}: {failure.strerror}")

    def _stop(self, *_: object) -> None:
        self.stopping = True


def _die_with(supervisor: int) -> Callable[[], None]:
    """A function for the new process: have the kernel send it SIGTERM when its supervisor ends, however that ends."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:
            os._exit(1)

    return ask


def main(entry: Path) -> int:
    """Go on as a child that belongs to nobody; whoever started this sees it end once the supervisor is at work."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    supervisor = Supervisor(entry)
    words = os.open(supervisor.state.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for output in (1, 2):
        os.dup2(words, output)
    os.write(writer, b"1")
    os.close(writer)
    return supervisor.supervise()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
