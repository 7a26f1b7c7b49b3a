"""How much memory this host gives a process: MemTotal, and the cgroup's limit where it is lower. Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def host_memory(root: Path = ROOT) -> tuple[int, str] | None:
    """Bytes and where they were read; None where this system does not say. `root` is where proc/ and sys/ lie."""
    found = [*_total(root), *_limits(root)]
    return min(found) if found else None


def _total(root: Path) -> Iterator[tuple[int, str]]:
    match = re.search(r"^MemTotal:\s+(\d+) kB$", text_of(root / "proc/meminfo"), re.MULTILINE)
    if match:
        yield int(match[1]) * 1024, "MemTotal in /proc/meminfo"


def _limits(root: Path) -> Iterator[tuple[int, str]]:
    """The limit of this process' cgroup and of each above it, in version 2 (memory.max) and 1 (limit_in_bytes)."""
    for line in text_of(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            base, file = "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = Path(path.lstrip("/"))
        for folder in (group, *group.parents):
            text = text_of(root / base / folder / file).strip()
            if text.isdecimal():
                yield int(text), f"the cgroup's limit in /{base}/{folder / file}"


def text_of(path: Path) -> str:
    """What is in a file of the system's; "" where it has none."""
    try:
        return path.read_text()
    except OSError:
        return ""
