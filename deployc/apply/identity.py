"""Who a process is. A pid may be handed to a stranger after its owner's death; pid, start time and boot id may not."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STATE, _SESSION, _START = 0, 3, 19  # fields 3, 6 and 22 of /proc/<pid>/stat, counted after the name: proc(5)


@dataclass(frozen=True, slots=True)
class Identity:
    """`start` is in clock ticks after boot, `boot` the kernel's boot id."""

    pid: int
    start: int
    boot: str


def boot_id() -> str:
    """The id that the kernel draws at each boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a living process; None where there is none, or only its zombie."""
    fields = _stat(pid)
    return Identity(pid, int(fields[_START]), boot_id()) if fields and fields[_STATE] not in "ZX" else None


def alive(process: Identity | None) -> bool:
    """Whether this very process still runs; a later process that was given its pid does not count."""
    return process is not None and identify(process.pid) == process


def send(process: Identity, number: signal.Signals) -> bool:
    """Signal this very process; False where it is gone. A pidfd holds the pid while its identity is checked."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def session(leader: Identity) -> list[Identity]:
    """The living processes of the session that `leader` opened, itself included, also after its own death.

    The kernel gives out no pid that still names a session, so whatever carries this session number and started
    after the leader belongs to it.
    """
    if boot_id() != leader.boot or _replaced(leader):
        return []
    found = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit() or not (fields := _stat(int(folder.name))):
            continue
        start = int(fields[_START])
        if int(fields[_SESSION]) == leader.pid and start >= leader.start and fields[_STATE] not in "ZX":
            found.append(Identity(int(folder.name), start, leader.boot))
    return found


def kill_session(leader: Identity) -> None:
    """SIGKILL to all that is left of a session."""
    for process in session(leader):
        send(process, signal.SIGKILL)


def resident_bytes(processes: list[Identity]) -> int:
    """Resident memory of several processes; pages they share are counted in each (/proc/<pid>/statm, field 2)."""
    total = 0
    for process in processes:
        with suppress(OSError):
            total += int((_PROC / str(process.pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def command_line(pid: int) -> str:
    """The command line of a process, for showing; "" where it cannot be read."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _replaced(leader: Identity) -> bool:
    """Whether the leader's pid now belongs to another process: then its session is another one too."""
    now = identify(leader.pid)
    return now is not None and now != leader


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
