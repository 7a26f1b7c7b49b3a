"""All that can be known to fail before anything that runs is touched, found at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deployc.apply import engine_env, ports, process, secrets
from deployc.apply.identity import session
from deployc.apply.logfile import LOG_BYTES
from deployc.apply.state import State
from deployc.diagnostics import Report, error
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle, Launch
from deployc.units import show_bytes

_NEEDED = 2 * LOG_BYTES + 64 * 2**20  # the log and its predecessor, history, and room to write them whole


@dataclass(frozen=True, slots=True)
class Ready:
    """What a start needs, checked: the engine's prefix, real paths of the placeholders, values of the secrets."""

    launch: Launch
    engine: Path
    places: Mapping[str, str]
    secrets: Mapping[str, str]


def check(
    deploy: Deploy, bundle: Bundle, folder: Path, store: Path, state: State, env: Mapping[str, str], *, builds: bool
) -> tuple[Ready | None, Report]:
    """Whether the bundle could be started here. `builds` = its artifact is still to be made, so need not be there."""
    report = Report()
    if len(bundle.launches) != 1:
        detail = f"{len(bundle.launches)} engines: behind one address they need an edge, not supported yet"
        fix = "set engine.parallel.replicas to 1, or another target.kind"
        report.add(
            error("DC638", "A process target starts one engine", detail, fix, deploy.at("engine.parallel.replicas"))
        )
        return None, report
    (launch,) = bundle.launches
    engine, found = engine_env.locate(deploy, folder, env)
    report.extend(found)
    values, found = secrets.resolve(launch.secrets, folder, env)
    report.extend(found)
    where = process.places(launch, folder, store)
    report.extend(_paths(launch, where, builds=builds))
    report.extend(_port(deploy, launch, state))
    report.extend(_disk(state))
    if engine is not None:
        report.extend(_flags(launch, engine))
    return (Ready(launch, engine, where, values) if engine is not None and not report.errors else None), report


def _paths(launch: Launch, where: Mapping[str, str], *, builds: bool) -> Report:
    report = Report()
    for name, content in launch.paths.items():
        kind, path = content.partition(":")[0], Path(where[name])
        if kind == "store" and builds:
            continue
        wanted = path / "config.json" if name == "DEPLOYC_MODEL" else path
        if not os.access(wanted, os.R_OK):
            fix = "`deployc build` makes it" if kind == "store" else "put it there, or name another path"
            report.add(
                error(
                    "DC635",
                    "A file that the engine needs is missing",
                    f"{content}: there is no {wanted} that this user may read",
                    fix,
                )
            )
    return report


def _port(deploy: Deploy, launch: Launch, state: State) -> Report:
    report = Report()
    failure = ports.bind_failure(launch.bind, launch.port)
    if failure is None:
        return report
    place = f"{launch.bind}:{launch.port}"
    if not ports.in_use(failure):
        fix = "choose an address of this host in target.bind, and a port that this user may use in target.port"
        report.add(error("DC637", "The address cannot be listened on", f"{place}: {failure.strerror}", fix,
                         deploy.at("target.bind")))  # fmt: skip
    elif not _ours(launch.port, state):
        fix = "end that process, or set target.port to a free port"
        report.add(error("DC636", "Another process listens on the port", f"{place}: {ports.describe(launch.port)}", fix,
                         deploy.at("target.port")))  # fmt: skip
    return report


def _ours(port: int, state: State) -> bool:
    run = process.running(state)
    holders = set(ports.holders(port))
    ours = {p.pid for p in session(run.engine)} if run and run.engine else set()
    return bool(holders) and holders <= ours


def _disk(state: State) -> Report:
    report = Report()
    free = shutil.disk_usage(state.path).free
    if free < _NEEDED:
        detail = f"{show_bytes(free)} free at {state.path}, {show_bytes(_NEEDED)} needed for log and history"
        report.add(error("DC639", "Not enough disk in the state folder", detail, "free some, or set target.state"))
    return report


def _flags(launch: Launch, engine: Path) -> Report:
    report = Report()
    for name in engine_env.unknown_flags(engine, [flag.name for flag in launch.flags]):
        because = next(flag.because for flag in launch.flags if flag.name == name)
        detail = f"--{name} ({because}): the argument parser in {engine} does not name it"
        fix = "take it out of engine.args, or use the engine version that the plan was made for"
        report.add(error("DC633", "The installed engine does not know a flag", detail, fix))
    return report
