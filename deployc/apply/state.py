"""The state folder of one deployment: where each thing lies, and who may read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deployc import files
from deployc.apply.identity import Identity
from deployc.diagnostics import Diagnostic, Stop, error

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy  # the supervisor lives long and needs no pydantic


@dataclass(frozen=True, slots=True)
class State:
    """Paths below one deployment's state folder, all 0700: nobody else reads logs, history or secrets."""

    path: Path

    @property
    def run(self) -> Path:
        """What runs, written by the supervisor; no file = nothing runs."""
        return self.path / "run.json"

    @property
    def history(self) -> Path:
        """One folder an apply: `<n>-<digest8>/`."""
        return self.path / "history"

    @property
    def secrets(self) -> Path:
        """One folder an apply, one file a secret."""
        return self.path / "secrets"

    @property
    def logs(self) -> Path:
        """`<digest8>.log` and one rotated predecessor, and the supervisor's own words."""
        return self.path / "logs"

    @property
    def cache(self) -> Path:
        """The engine's compiled graphs, kept between starts."""
        return self.path / "cache"

    @property
    def mutex(self) -> Path:
        """Locked by the one apply or destroy that is at work."""
        return self.path / "mutex"

    @property
    def supervisor_lock(self) -> Path:
        """Locked by the living supervisor: the kernel's own word that there is at most one."""
        return self.path / "supervisor.lock"

    def make(self) -> None:
        """Make the folders, readable by their owner alone; Stop where that cannot be."""
        try:
            for folder in (self.path, self.history, self.secrets, self.logs, self.cache):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_uid != os.getuid():
                raise PermissionError(f"{self.path} belongs to another user (uid {self.path.stat().st_uid})")
            self.path.chmod(0o700)
            self.secrets.chmod(0o700)
        except OSError as failure:
            raise Stop(unusable(self.path, failure)) from failure


def unusable(path: Path, failure: OSError) -> Diagnostic:
    """The diagnostic of a state folder that cannot be made or written."""
    return error(
        "DC631", "The state folder cannot be used", f"{failure.filename or path}: {failure.strerror or failure}",
        "free space or rights there, or name another folder in target.state",
    )  # fmt: skip


def locate(deploy: Deploy, folder: Path, env: Mapping[str, str]) -> State:
    """`target.state`, relative to the deploy.yaml's folder; else `$XDG_STATE_HOME/deployc/<name>`.

    A relative XDG_STATE_HOME is ignored, as the XDG Base Directory Specification says.
    """
    if deploy.target.state != "auto":
        return State(files.beside(folder, deploy.target.state))
    return State(home(env) / deploy.name)


def home(env: Mapping[str, str]) -> Path:
    """The folder of all state folders that no deploy.yaml names: `$XDG_STATE_HOME/deployc`."""
    named = Path(env.get("XDG_STATE_HOME", ""))
    return (named if named.is_absolute() else files.home(env) / ".local" / "state") / "deployc"


Phase = Literal["running", "restarting", "failed"]


@dataclass(frozen=True, slots=True)
class Run:
    """run.json: one engine under one supervisor. `engine` is None before its first start and between two."""

    entry: str  # folder in history/
    digest: str
    phase: Phase
    supervisor: Identity
    engine: Identity | None
    since: str  # start of the engine that runs, ISO 8601 UTC
    drain_timeout: float  # seconds between SIGTERM and SIGKILL
    restarts: int = 0
    reason: str = ""  # why it ended, the last time it did

    def write(self, state: State) -> None:
        """Replace run.json."""
        files.write_json(state.run, {"format_version": "1.0", **asdict(self)})

    def with_engine(self, engine: Identity | None) -> Run:
        """The same run with a freshly started engine, or none."""
        return replace(self, engine=engine, since=now())


def read_run(state: State) -> Run | None:
    """run.json, or None where nothing runs; Stop where the file is damaged."""
    document = files.read_json(state.run)
    if document is None:
        return None
    try:
        return Run(
            entry=str(document["entry"]),
            digest=str(document["digest"]),
            phase=document["phase"],
            supervisor=Identity(**document["supervisor"]),
            engine=Identity(**document["engine"]) if document["engine"] else None,
            since=str(document["since"]),
            drain_timeout=float(document["drain_timeout"]),
            restarts=int(document["restarts"]),
            reason=str(document["reason"]),
        )
    except (KeyError, TypeError, ValueError) as wrong:
        detail = f"{state.run}: {wrong!r} is missing or wrong"
        raise Stop(error("DC630", "A state file is damaged", detail, f"remove {state.run} if nothing runs")) from wrong


def now() -> str:
    """The time, ISO 8601 UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def short(digest: str) -> str:
    """The eight hexadecimal digits that name a bundle in folders and log files."""
    return digest.removeprefix("sha256:")[:8]
