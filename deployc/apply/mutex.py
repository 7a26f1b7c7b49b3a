"""One apply at a time: a lock on a file, which the kernel frees however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from deployc.apply.identity import command_line
from deployc.apply.state import State, now, unusable
from deployc.diagnostics import Diagnostic, ExitCode, Stop, error


@contextmanager
def hold(state: State) -> Iterator[None]:
    """Hold the deployment's mutex; Stop with exit 5 where another process holds it."""
    try:
        descriptor = os.open(state.mutex, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise Stop(unusable(state.path, failure)) from failure
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Stop(_held(os.pread(descriptor, 100, 0).decode(errors="replace")), ExitCode.REFUSED) from None
        with suppress(OSError):  # on a full disk the lock holds all the same, and says no name
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {now()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _held(content: str) -> Diagnostic:
    pid, _, since = content.partition(" ")
    holder = f"process {pid} ({command_line(int(pid))}), since {since}" if pid.isdigit() else "another process"
    return error(
        "DC632", "Another apply or destroy of this deployment is at work", f"{holder} holds the mutex",
        "wait until it is done, or end that process; the mutex is freed with it",
    )  # fmt: skip
