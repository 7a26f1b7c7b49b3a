"""Who listens where, from /proc: a port in use is told with the process that holds it."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from deployc.apply.identity import command_line

_LISTEN = "0A"  # st in /proc/net/tcp: TCP_LISTEN, include/net/tcp_states.h


def bind_failure(bind: str, port: int) -> OSError | None:
    """Why a server could not listen there now, or None where it could. Tried with SO_REUSEADDR, as engines do."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
            probe.listen(1)
        except OSError as failure:
            return failure
    return None


def in_use(failure: OSError) -> bool:
    """Whether the failure is that another socket has the port."""
    return failure.errno == errno.EADDRINUSE


def holders(port: int) -> list[int]:
    """The pids with a socket that listens on this port, as far as this user may see them."""
    inodes = _listening(port)
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and inodes & _sockets(folder / "fd"):
            found.add(int(folder.name))
    return sorted(found)


def describe(port: int) -> str:
    """Who holds a port, in words."""
    pids = holders(port)
    if not pids:
        return "a process of another user, or one in another namespace"
    return "; ".join(f"process {pid} ({command_line(pid)[:120] or 'no command line'})" for pid in pids)


def _listening(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 here
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _sockets(descriptors: Path) -> set[str]:
    links = set()
    try:
        for descriptor in descriptors.iterdir():
            links.add(str(descriptor.readlink()))
    except OSError:
        pass  # it ended meanwhile, or is not ours to look into
    return links
