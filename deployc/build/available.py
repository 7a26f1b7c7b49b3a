"""How much memory this process may still take: MemAvailable, and what its cgroup leaves where that is less. Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from deployc.facts.host_memory import host_memory, text_of

ROOT = Path("/")


def available(root: Path = ROOT) -> int | None:
    """Bytes; None where this system does not say. `root` is where proc/ and sys/ lie."""
    return min([*_host(root), *_groups(root), *_limit(root)], default=None)


def _host(root: Path) -> Iterator[int]:
    if match := re.search(r"^MemAvailable:\s+(\d+) kB$", text_of(root / "proc/meminfo"), re.MULTILINE):
        yield int(match[1]) * 1024


def _groups(root: Path) -> Iterator[int]:
    """Of each cgroup (version 2) around this process: its limit less what is held and cannot be dropped."""
    for line in text_of(root / "proc/self/cgroup").splitlines():
        number, _, path = line.split(":", 2)
        if number != "0":
            continue
        group = Path(path.lstrip("/"))
        for folder in (group, *group.parents):
            place = root / "sys/fs/cgroup" / folder
            limit, held = text_of(place / "memory.max").strip(), text_of(place / "memory.current").strip()
            if limit.isdecimal() and held.isdecimal():
                dropped = re.search(r"^inactive_file (\d+)$", text_of(place / "memory.stat"), re.MULTILINE)
                yield max(0, int(limit) - int(held) + (int(dropped[1]) if dropped else 0))


def _limit(root: Path) -> Iterator[int]:
    """Of a cgroup of version 1, which does not say what can be dropped, the limit itself."""
    if (found := host_memory(root)) is not None:
        yield found[0]
