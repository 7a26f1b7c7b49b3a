"""The engine as a background process of this host: how it is started under its supervisor, and how it is stopped."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import deployc
from deployc import files
from deployc.apply import history, secrets
from deployc.apply.health import Endpoint
from deployc.apply.history import Start
from deployc.apply.identity import alive, kill_session, send, session
from deployc.apply.state import Run, State, read_run, short
from deployc.diagnostics import Diagnostic, Stop, error
from deployc.emit.paths import filled
from deployc.types.bundle import Bundle, Launch

BACKOFF = (1.0, 5.0, 15.0)
"""Seconds before each restart of a crashed engine; after the last it stays down and says why."""

_APPEARS = 10.0  # seconds for a supervisor to write run.json, or for the kernel to clear away what was killed
_HOST = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "HF_HOME",
         "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
         "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}  # fmt: skip
"""What an engine takes over from the shell of whoever applies: facts of the host; the rest is deploy.yaml's to say."""


def places(launch: Launch, folder: Path, store: Path) -> dict[str, str]:
    """The real path of each of a launch's placeholders: an artifact in the store, or beside the deploy.yaml."""
    found = {}
    for name, content in launch.paths.items():
        kind, _, place = content.partition(":")
        found[name] = str(store / place if kind == "store" else files.beside(folder, place).resolve())
    return found


def real_start(
    bundle: Bundle, launch: Launch, where: Mapping[str, str], engine: Path, state: State, *, drain: float, health: float
) -> Start:
    """How the launch is started here: programs of the engine environment, placeholders filled, caches below `state`."""
    program, *rest = launch.argv
    return Start(
        argv=(str(engine / "bin" / program), *(filled(word, where) for word in rest)),
        env={"VLLM_CACHE_ROOT": str(state.cache / "vllm"), **launch.env},
        bind=launch.bind,
        port=launch.port,
        served_name=launch.served_name,
        log=str(state.logs / f"{short(bundle.digest)}.log"),
        drain_timeout=drain,
        health_timeout=health,
        backoff=BACKOFF,
    )


def host_environment(env: Mapping[str, str], start: Start) -> dict[str, str]:
    """The environment of the supervisor, which hands it on: facts of the host, never written to disk.

    Proxy addresses may hold passwords. TMPDIR is kept short: engines bind unix sockets there (108 bytes at most).
    """
    kept = {name: value for name, value in env.items() if name in _HOST or name.startswith("LC_")}
    kept["PATH"] = f"{Path(start.argv[0]).parent}:{kept.get('PATH', os.defpath)}"
    temporary = env.get("TMPDIR", "/tmp")  # noqa: S108
    usable = len(temporary) < 60 and os.access(temporary, os.W_OK)
    return {**kept, "TMPDIR": temporary if usable else "/tmp", "PYTHONUNBUFFERED": "1"}  # noqa: S108


def endpoint(state: State, entry: str) -> Endpoint:
    """Where an entry's engine answers, with the key it was given."""
    start = history.start(state, entry)
    key = secrets.kept(state, entry).get("VLLM_API_KEY", "")
    return Endpoint(start.bind, start.port, start.served_name, key)


def launch(state: State, entry: str, env: Mapping[str, str]) -> Run:
    """Start an entry's engine under a new supervisor and return once that is at work; Stop where it cannot be."""
    lock = os.open(state.supervisor_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(lock):
            raise Stop(_stuck(state))
        state.run.unlink(missing_ok=True)
        words = [sys.executable, "-m", "deployc.apply.supervise", str(state.history / entry)]
        package = Path(deployc.__file__).resolve().parent.parent
        done = subprocess.run(
            words,
            check=False,
            env=host_environment(env, history.start(state, entry)),
            cwd=package,  # so that the module is found, installed or not
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            pass_fds=(lock,),
        )
    finally:
        os.close(lock)
    run = read_run(state)
    if done.returncode or run is None:
        detail = f"it ended with code {done.returncode}: {done.stderr.strip()[-2000:] or 'without a word'}"
        raise Stop(error("DC643", "The supervisor could not start", detail, f"look at {state.path}"))
    return run


def stop(state: State) -> Run | None:
    """Stop what runs, wholly: SIGTERM, the drain timeout, SIGKILL. What was stopped, or None where nothing ran."""
    run = running(state)
    if run is not None:
        run = _end_supervisor(state, run)
        if run.engine is not None:  # what is left where the supervisor itself was killed
            kill_session(run.engine)
        state.run.unlink(missing_ok=True)
    rest = run.engine if run else None
    if not _until(lambda: not supervised(state) and not (rest and session(rest)), _APPEARS):
        raise Stop(_stuck(state))
    return run


def _end_supervisor(state: State, run: Run) -> Run:
    """Have the supervisor stop its engine; kill it where it does not. The run as it was written last."""
    patience = run.drain_timeout + _APPEARS
    if not send(run.supervisor, signal.SIGTERM) or _until(lambda: not alive(run.supervisor), patience):
        return run
    send(run.supervisor, signal.SIGKILL)
    return read_run(state) or run  # it may have restarted the engine meanwhile


def running(state: State) -> Run | None:
    """run.json; where a supervisor lives that has not written it yet, once it has."""
    if not state.run.exists() and supervised(state):
        _until(lambda: state.run.exists() or not supervised(state), _APPEARS)
    return read_run(state)


def supervised(state: State) -> bool:
    """Whether a supervisor of this deployment lives, by the kernel's word: its lock is held."""
    try:
        lock = os.open(state.supervisor_lock, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _locked(lock)
    finally:
        os.close(lock)


def _locked(descriptor: int) -> bool:
    """Whether the lock was free and is now this descriptor's, until all copies of it are closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true within that time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _stuck(state: State) -> Diagnostic:
    return error(
        "DC642", "What runs could not be stopped", f"{state.path}: its supervisor or an engine process still lives",
        "a process that even SIGKILL does not end hangs in a driver: look at dmesg and nvidia-smi",
    )  # fmt: skip
