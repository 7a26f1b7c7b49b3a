"""What was applied: `history/<n>-<digest8>/` with the bundle, how its engine is started, and a receipt."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deployc import files
from deployc.apply.state import State, now, short
from deployc.diagnostics import Stop, error

if TYPE_CHECKING:
    from deployc.types.bundle import Bundle

Outcome = Literal["starting", "serving", "replaced", "failed", "interrupted", "destroyed"]
"""`starting` until verified; `serving` from then on, running or not, until another replaces it or it is destroyed."""


@dataclass(frozen=True, slots=True)
class Start:
    """How an engine process is started on this host: real paths, no secret. Times in seconds."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    bind: str
    port: int
    served_name: str
    log: str
    drain_timeout: float
    health_timeout: float
    backoff: tuple[float, ...]  # the pause before each restart; as many restarts as there are pauses


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one apply. Times are ISO 8601 UTC."""

    entry: str
    digest: str
    name: str
    engine: str
    artifact: str | None  # the recipe's key in the store
    started: str
    outcome: Outcome = "starting"
    settled: str | None = None
    startup_seconds: float | None = None  # from the start of the process to the first verified answer
    flags: Mapping[str, str] = field(default_factory=dict)  # of the launch; "" for a bare switch
    env: Mapping[str, str] = field(default_factory=dict)  # of the launch, placeholders as they are
    paths: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def begin(state: State, bundle: Bundle, start: Start, receipt: Receipt) -> None:
    """Write a new entry: the bundle's files, the start and the receipt, the receipt last."""
    folder = state.history / receipt.entry
    for name, text in bundle.files.items():
        path = folder / "bundle" / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write(path, text)
    folder.mkdir(mode=0o700, exist_ok=True)
    files.write_json(folder / "launch.json", {"format_version": "1.0", **asdict(start)})
    _write(state, receipt)


def next_entry(state: State, digest: str) -> str:
    """The folder name of the next apply: numbers only grow, also past entries that were removed."""
    return f"{max((number(e) for e in entries(state)), default=0) + 1}-{short(digest)}"


def entries(state: State) -> list[str]:
    """All entries, oldest first, whole or not."""
    if not state.history.is_dir():
        return []
    return sorted((f.name for f in state.history.iterdir() if f.name.split("-")[0].isdigit()), key=number)


def number(entry: str) -> int:
    """The running number of an entry."""
    return int(entry.split("-")[0])


def settle(state: State, entry: str, outcome: Outcome, *, seconds: float | None = None, reason: str = "") -> Receipt:
    """Write what became of an entry."""
    was = receipt(state, entry)
    if was is None:
        raise _damaged(state.history / entry / "receipt.json", "is missing")
    took = was.startup_seconds if seconds is None else round(seconds, 1)
    settled = replace(was, outcome=outcome, settled=now(), startup_seconds=took, reason=reason)
    _write(state, settled)
    return settled


def receipt(state: State, entry: str) -> Receipt | None:
    """The receipt of an entry; None where its writing was cut short; Stop where it is damaged."""
    path = state.history / entry / "receipt.json"
    document = files.read_json(path)
    if document is None:
        return None
    try:
        return Receipt(**{k: v for k, v in document.items() if k != "format_version"})
    except TypeError as wrong:
        raise _damaged(path, str(wrong)) from wrong


def start(state: State, entry: str) -> Start:
    """How an entry's engine is started; Stop where that is damaged or gone."""
    path = state.history / entry / "launch.json"
    document = files.read_json(path)
    if document is None:
        raise _damaged(path, "is missing")
    try:
        lists = {"argv": tuple(document["argv"]), "backoff": tuple(document["backoff"])}
        return Start(**{k: v for k, v in document.items() if k != "format_version"} | lists)
    except (TypeError, KeyError) as wrong:
        raise _damaged(path, repr(wrong)) from wrong


def last_serving(state: State) -> Receipt | None:
    """What ought to be serving: the newest entry that was verified and neither replaced nor destroyed since."""
    receipts = (receipt(state, entry) for entry in reversed(entries(state)))
    return next((r for r in receipts if r and r.outcome == "serving"), None)


def collect(state: State, keep: int, *, spare: tuple[str, ...]) -> None:
    """Remove all but the newest `keep` entries and those to be spared, and the logs that belong to none of the rest."""
    kept = set(entries(state)[-keep:]) | set(spare)
    for entry in entries(state):
        if entry not in kept:
            shutil.rmtree(state.history / entry)
    digests = {entry.split("-", 1)[1] for entry in kept}
    for log in state.logs.glob("*.log*"):
        if (digest := log.name.split(".")[0]) != "supervisor" and digest not in digests:
            log.unlink()


def _write(state: State, receipt: Receipt) -> None:
    files.write_json(state.history / receipt.entry / "receipt.json", {"format_version": "1.0", **asdict(receipt)})


def _damaged(path: Path, why: str) -> Stop:
    return Stop(
        error(
            "DC630",
            "A state file is damaged",
            f"{path}: {why}",
            f"`deployc destroy` if it is what runs, then remove {path.parent} and apply again",
        )
    )
