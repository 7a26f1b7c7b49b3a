"""Who uses which artifact: what the histories of this host's deployments and its living processes say."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deployc.apply import history
from deployc.apply.state import State, home, locate
from deployc.build.store import faults
from deployc.diagnostics import Diagnostic, Stop
from deployc.files import is_locked

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy


@dataclass(slots=True)
class Uses:
    """Key of an artifact -> who uses it, for people. `doubts` say why there may be uses that are not known."""

    by: dict[str, list[str]] = field(default_factory=dict)
    doubts: list[Diagnostic] = field(default_factory=list)

    def add(self, key: str, who: str) -> None:
        """Note one use, once."""
        if who not in self.by.setdefault(key, []):
            self.by[key].append(who)


def states(deploy: Deploy, folder: Path, env: Mapping[str, str], more: Iterable[Path] = ()) -> list[State]:
    """The state folders that are known: the host's own, that of the file, and `more`. OSError where none can be."""
    base = home(env)
    paths = sorted(path for path in base.iterdir() if path.is_dir()) if base.is_dir() else []
    found = dict.fromkeys([*paths, locate(deploy, folder, env).path, *(path.absolute() for path in more)])
    return [State(path) for path in found]


def uses(
    deploy: Deploy, folder: Path, env: Mapping[str, str], keys: Collection[str], more: Iterable[Path] = ()
) -> Uses:
    """Who uses which artifact on this host, as far as its state folders and `more` of them say.

    Of the `keys` also those that a living process has on its command line or in its container.
    """
    try:
        places = states(deploy, folder, env, more)
    except OSError as refused:
        found = used_by([], keys)
        where, why = str(refused.filename or home(env)), refused.strerror or str(refused)
        found.doubts.append(faults.unknown_uses(where, why))
        return found
    return used_by(places, keys)


def used_by(places: Iterable[State], keys: Collection[str]) -> Uses:
    """The same of these state folders."""
    found = Uses()
    for state in places:
        try:
            _read(state, found)
        except Stop as damaged:
            found.doubts += [faults.unknown_uses(str(state.path), d.detail) for d in damaged.report]
        except (OSError, ValueError) as refused:
            why = refused.strerror if isinstance(refused, OSError) and refused.strerror else str(refused)
            found.doubts.append(faults.unknown_uses(str(state.path), why))
    for pid, words in _named_by_processes():
        for key in keys:
            if key.encode() in words:
                found.add(key, f"process {pid}")
    return found


def _read(state: State, found: Uses) -> None:
    """One deployment's history. Raises Stop, OSError, ValueError where it is not what it must be."""
    try:
        os.scandir(state.history).close()
    except FileNotFoundError:
        return
    if is_locked(state.mutex):
        found.doubts.append(faults.at_work(f"an apply or destroy of {state.path.name}", "no artifact is removed"))
    for entry in history.entries(state):
        receipt = history.receipt(state, entry)
        if receipt is None or receipt.artifact is None:  # cut short before anything was started, or needs none
            continue
        if not isinstance(receipt.artifact, str):
            raise ValueError(f"{entry}: its artifact is {receipt.artifact!r:.60}")
        found.add(receipt.artifact, f"{receipt.name}{' (serving)' if receipt.outcome == 'serving' else ''}")


def _named_by_processes() -> Iterator[tuple[str, bytes]]:
    """The command line of every other process that this user may look at, and what is mounted into its container."""
    own = Path("/proc/self/ns/mnt").readlink()
    for path in Path("/proc").glob("[0-9]*"):
        if path.name == str(os.getpid()):
            continue
        words = b""
        try:
            words = (path / "cmdline").read_bytes()
            if (path / "ns" / "mnt").readlink() != own:
                words += (path / "mountinfo").read_bytes()
        except OSError:  # it ended, or is another user's
            pass
        yield path.name, words
