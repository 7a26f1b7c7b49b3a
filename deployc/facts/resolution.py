"""RESOLVE, strung together: from the lockfile where there is one, else from folders, hubs, profiles and NVML.

With a lockfile nothing remote is asked; local folders are looked at only to see whether they changed, and with
`offline` not even that. Every source is tried, so that all that is wrong is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deployc.diagnostics import Diagnostic, Report, Span, error, warning
from deployc.facts import lock as lockfile
from deployc.facts.assume import said
from deployc.facts.faults import Fault
from deployc.facts.source import is_folder
from deployc.types.facts import AdapterFacts, EngineFacts, Facts, GpuFacts, ModelFacts

if TYPE_CHECKING:
    from deployc.facts.lock import Lock
    from deployc.facts.source import Source
    from deployc.spec.deploy import Deploy

T = TypeVar("T", ModelFacts, AdapterFacts)
Env = Mapping[str, str]
Assume = Mapping[str, Any]


def resolve(
    deploy: Deploy, *, lock_path: Path | None, offline: bool, env: Env, assume: Assume | None = None
) -> tuple[Facts | None, Report]:
    """Facts, or the diagnostics that say why not (DC190-DC269, and those of cards and engine).

    `assume` maps keys of the model's config.json to what is assumed of them; without it a lockfile's own hold.
    `model.overrides` are in the facts, and never in a lockfile.
    """
    facts, report = _resolved(deploy, lock_path, offline, env, assume or {})
    if facts is not None:
        report.extend(said(facts.model.architecture, deploy.at("model.source")))
    if facts is not None and deploy.model.overrides:
        from deployc.facts.overrides import followed

        model, notes = followed(facts.model, deploy.model.overrides, deploy.at("model.overrides"))
        facts = replace(facts, model=model)
        report.extend(notes)
    return facts, report


def _resolved(
    deploy: Deploy, lock_path: Path | None, offline: bool, env: Env, assume: Assume
) -> tuple[Facts | None, Report]:
    if lock_path is None or not lock_path.is_file():
        return _unlocked(deploy, lock_path, offline, env, assume)
    lock, report = lockfile.read(lock_path)
    if lock is None:
        return None, report
    facts, found = lockfile.facts_from(lock, deploy, assume)
    report.extend(found)
    if facts is None or offline:
        return facts, report
    return _looked_over(deploy, facts, env, report), report


def update(deploy: Deploy, lock_path: Path, *, upgrade: bool, env: Env, assume: Assume | None = None) -> Report:
    """Write the lockfile of this file. Raises Stop where the disk refuses.

    What is pinned to a commit, or was written by hand, stays as long as the file asks for the same; `upgrade` asks
    the hubs again. Without facts nothing is written. A damaged old lockfile is replaced.
    """
    old = lockfile.read(lock_path)[0] if lock_path.is_file() and not upgrade else None
    facts, report = _fresh(deploy, env, old, assume or {})
    if facts is not None:
        report.extend(said(facts.model.architecture, deploy.at("model.source")))
        lockfile.write(lock_path, lockfile.freeze(deploy, facts))
    return report


def _unlocked(
    deploy: Deploy, lock_path: Path | None, offline: bool, env: Env, assume: Assume
) -> tuple[Facts | None, Report]:
    from deployc.facts.opening import remote

    if offline and (on_hub := remote(deploy)):
        return None, Report([_needs_lock(source, deploy, key, lock_path) for key, source in on_hub])
    return _fresh(deploy, env, None, assume)


def _fresh(deploy: Deploy, env: Env, old: Lock | None, assume: Assume) -> tuple[Facts | None, Report]:
    report = Report()
    model = _model(deploy, env, old, assume, report)
    adapters = [_adapter(deploy, index, env, old, report) for index in range(len(deploy.adapters))]
    devices, engine = _devices(deploy, env, report), _engine(deploy, report)
    known = [adapter for adapter in adapters if adapter is not None]
    if model is None or len(known) < len(adapters) or devices is None or engine is None or report.errors:
        return None, report
    local = is_folder(deploy.model.source) and all(is_folder(adapter.source) for adapter in deploy.adapters)
    return Facts(model, tuple(known), devices, engine, locked=local), report


def _devices(deploy: Deploy, env: Env, report: Report) -> tuple[GpuFacts, ...] | None:
    from deployc.facts.gpu import devices

    found, said = devices(deploy, env)
    report.extend(said)
    return found


def _engine(deploy: Deploy, report: Report) -> EngineFacts | None:
    from deployc.facts.engine import engine

    found, said = engine(deploy)
    report.extend(said)
    return found


def _model(deploy: Deploy, env: Env, old: Lock | None, assume: Assume, report: Report) -> ModelFacts | None:
    same = old is not None and _same(deploy, old, "model.") and old.model.assume == assume
    if old is not None and same and _stays(old.model.source, old.model.provenance):
        return old.model
    model = deploy.model

    def read(source: Source) -> ModelFacts:
        from deployc.facts.model import model_facts

        facts, notes = model_facts(source, model.source, assume)
        report.extend(replace(note, at=deploy.at("model.source")) for note in notes)
        return facts

    return _read(deploy, "model", model.source, model.revision, env, report, read)


def _adapter(deploy: Deploy, index: int, env: Env, old: Lock | None, report: Report) -> AdapterFacts | None:
    adapter = deploy.adapters[index]
    section = f"adapters.{index}"
    if old is not None and index < len(old.adapters) and _same(deploy, old, f"{section}."):
        locked = old.adapters[index]
        if _stays(adapter.source, "") or _gone(deploy, section, locked, env, report):
            return locked

    def read(source: Source) -> AdapterFacts:
        from deployc.facts.adapter import adapter_facts

        return adapter_facts(adapter.name, source, adapter.source)

    return _read(deploy, section, adapter.source, adapter.revision, env, report, read)


def _read(
    deploy: Deploy,
    section: str,
    shown: str,
    revision: str | None,
    env: Env,
    report: Report,
    read: Callable[[Source], T],
) -> T | None:
    """What `read` makes of the opened source, or None with the fault reported where it hangs."""
    from deployc.facts.opening import open_source

    try:
        return read(open_source(deploy, shown, revision, section, env, report))
    except Fault as fault:
        key = "model.endpoint" if fault.key == "endpoint" else f"{section}.{fault.key}"
        report.add(fault.placed(deploy.at(key if deploy.written(key) else f"{section}.source")))
        return None


def _same(deploy: Deploy, old: Lock, prefix: str) -> bool:
    now = {key: value for key, value in lockfile.asked(deploy).items() if key.startswith(prefix)}
    return now == {key: value for key, value in old.asked.items() if key.startswith(prefix)}


def _stays(source: str, provenance: str) -> bool:
    """A commit stays what it is; a folder may have changed since, unless it was never read."""
    return bool(provenance) or not is_folder(source)


def _looked_over(deploy: Deploy, facts: Facts, env: Env, report: Report) -> Facts | None:
    """Locked facts, with what changed since in local folders and in the cards of this machine."""
    model = facts.model
    if is_folder(model.source) and not model.provenance and _changed(deploy, "model", model, env, report):
        fresh = _model(deploy, env, None, model.assume, report)
        facts = replace(facts, model=fresh or model)
    adapters = list(facts.adapters)
    for index, adapter in enumerate(facts.adapters):
        if is_folder(adapter.source) and _changed(deploy, f"adapters.{index}", adapter, env, report):
            adapters[index] = _adapter(deploy, index, env, None, report) or adapter
    facts = replace(facts, adapters=tuple(adapters))
    if deploy.hardware.gpu in ("auto", "cpu"):
        said = Report()
        here = _devices(deploy, env, said)
        report.extend(said if here is not None else [_other_machine(deploy)])
        facts = replace(facts, devices=here or facts.devices)
    return None if report.errors else facts


def _gone(deploy: Deploy, section: str, locked: ModelFacts | AdapterFacts, env: Env, report: Report) -> bool:
    """Whether a locked folder is not there: a warning says so, and what is locked of it stays."""
    from deployc.facts.opening import folder_path

    if folder_path(deploy, locked.source, env).exists():
        return False
    detail = f"{locked.source} is not there; the facts are those of the lockfile."
    fix = "Plan with what is locked, or bring the folder before building."
    report.add(_since(detail, fix, deploy.at(f"{section}.source")))
    return True


def _changed(deploy: Deploy, section: str, locked: ModelFacts | AdapterFacts, env: Env, report: Report) -> bool:
    """Whether a folder's files are no longer those that were locked; a warning says so, or that it is not there."""
    from deployc.facts.folder import Folder
    from deployc.facts.opening import folder_path
    from deployc.facts.source import pinned

    at = deploy.at(f"{section}.source")
    if _gone(deploy, section, locked, env, report):
        return False
    try:
        now = pinned(Folder(folder_path(deploy, locked.source, env), locked.source).files())
    except Fault as fault:
        report.add(fault.placed(at))
        return False
    differing = sorted(n for n in now.keys() | locked.files.keys() if now.get(n) != locked.files.get(n))
    if differing:
        shown = ", ".join(differing[:3]) + (" …" if len(differing) > 3 else "")
        detail = f"{locked.source}: {shown} changed since; the facts are those of the folder as it is now."
        report.add(_since(detail, "Run `deployc lock` to pin what is there now.", at))
    return bool(differing)


def _since(detail: str, fix: str, at: Span | None) -> Diagnostic:
    return warning("DC194", "a folder is not as it was locked", detail, fix, at)


def _needs_lock(source: str, deploy: Deploy, key: str, lock_path: Path | None) -> Diagnostic:
    named = lock_path.name if lock_path else "deploy.lock"
    detail = f"{source} lies on a hub, and --offline reads nothing but a lockfile; there is no {named} beside the file."
    fix = "Run `deployc lock` once with network, or name a local folder."
    return error("DC193", "offline without a lockfile", detail, fix, deploy.at(key))


def _other_machine(deploy: Deploy) -> Diagnostic:
    detail = "No card can be asked here; the cards are those of the lockfile."
    fix = "Name the card's profile in hardware.gpu if the file is planned on machines without it."
    return warning("DC195", "the cards are not of this machine", detail, fix, deploy.at("hardware.gpu"))
