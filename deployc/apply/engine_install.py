"""Makes environments apart from the tool's: a venv, and in it vLLM (with the CPU build's mends) or the quantizer."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deployc import files
from deployc.apply import cpu_build, quantizer
from deployc.apply.engine_env import MARKER, environment_path, installed_version
from deployc.apply.state import now
from deployc.diagnostics import ExitCode, Report, Stop, error, warning
from deployc.units import parse_bytes, show_bytes

Say = Callable[[str], None]
_SHOWN_LINES = 15
_TOLD = ("Collecting ", "Downloading ", "Installing ", "Successfully ", "Building ")
_IGNORED = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "VIRTUAL_ENV")


_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Environment:
    """What is to be made: `version` of `distribution` in `prefix`, `program` in its bin/ once it is finished.

    `cpu`: torch's build for the CPU is wanted. `disk` in bytes, 0 where it is not known. `fill` is called with pip, the
    prefix and a folder for what is only needed meanwhile.
    """

    distribution: str
    version: str
    prefix: Path
    cpu: bool
    program: str
    disk: int
    fill: Callable[[Callable[..., None], Path, Path], None]


def install(version: str, *, cpu: bool, path: Path | None, env: Mapping[str, str], say: Say) -> tuple[Path, Report]:
    """The prefix of a finished environment with vLLM `version`; made if it is not there, remade if it is incomplete."""
    prefix = path or environment_path(version, cpu, env)
    if not cpu:
        return _made(Environment("vllm", version, prefix, cpu, "vllm", 0, _packages([f"vllm=={version}"])), env, say)
    pins = cpu_build.pins(version)

    def fill(pip: Callable[..., None], prefix: Path, scratch: Path) -> None:
        cpu_build.install(pins, prefix, scratch, pip)

    return _made(Environment("vllm", version, prefix, cpu, "vllm", parse_bytes(pins["disk"]), fill), env, say)


def install_quantizer(
    version: str | None, *, cpu: bool, path: Path | None, env: Mapping[str, str], say: Say
) -> tuple[Path, Report]:
    """The same for llm-compressor, None = the version that artifacts are made with. `cpu`: on a host without a GPU."""
    version = version or quantizer.default_version()
    pins = quantizer.pins(version)
    say(f"torch for {'the CPU: no NVIDIA GPU is used here' if cpu else 'NVIDIA GPUs'}")
    prefix = path or quantizer.environment_path(version, env)
    disk = parse_bytes(pins["disk"]["cpu" if cpu else "gpu"])
    return _made(
        Environment(quantizer.NAME, version, prefix, cpu, "python", disk, _packages(pins["packages"])), env, say
    )


def _packages(wanted: Sequence[str]) -> Callable[[Callable[..., None], Path, Path], None]:
    return lambda pip, _, __: pip("install", *wanted)


def _made(wanted: Environment, env: Mapping[str, str], say: Say) -> tuple[Path, Report]:
    """A virtual environment cannot be moved, so it grows where it stays and its marker file is written last."""
    wanted = replace(wanted, prefix=wanted.prefix.absolute())
    prefix = wanted.prefix
    with _alone(prefix):
        if _finished(wanted):
            say(f"{wanted.distribution} {wanted.version} is installed in {prefix}")
            return prefix, Report()
        _clear(prefix, say)
        _room(prefix, wanted.disk, say)
        say(f"making {prefix} with Python {sys.version.split()[0]}")
        _run([sys.executable, "-m", "venv", str(prefix)], env, say)
        pip = [str(prefix / "bin" / "python"), "-m", "pip"]
        scratch = prefix / "tmp"  # on the same disk as the environment: /tmp is often small
        scratch.mkdir()
        pip_env = {**env, "TMPDIR": str(scratch)}
        wanted.fill(lambda *words: _run([*pip, *words], pip_env, say), prefix, scratch)
        shutil.rmtree(scratch)
        return prefix, _finish(wanted, say)


def _finish(wanted: Environment, say: Say) -> Report:
    report = Report()
    prefix, name, version = wanted.prefix, wanted.distribution, wanted.version
    found, torch = installed_version(prefix, name), installed_version(prefix, "torch") or "none"
    if found is None or found.split("+")[0] != version:
        detail = f"pip is done, and {prefix} holds {name} {found or 'nowhere'} instead of {version}"
        raise Stop(error("DC622", "The engine environment could not be made", detail, "look at pip's configuration"))
    if wanted.cpu and not torch.endswith("+cpu"):
        detail = f"torch {torch} is a GPU build: several GB of libraries that are never used on a CPU"
        fix = "point pip at PyTorch's index of CPU wheels (PIP_EXTRA_INDEX_URL) and install again"
        report.add(warning("DC626", "torch is not the CPU build", detail, fix))
    files.write_json(prefix / MARKER, {"format_version": "1.0", "engine": name, "version": version,
                                       "cpu": wanted.cpu, "torch": torch, "made": now()})  # fmt: skip
    say(f"{name} {found} with torch {torch} in {prefix}")
    return report


def _finished(wanted: Environment) -> bool:
    try:
        marker: Any = json.loads((wanted.prefix / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (
        isinstance(marker, dict)
        and (marker.get("engine"), marker.get("version"), marker.get("cpu"))
        == (wanted.distribution, wanted.version, wanted.cpu)
        and (wanted.prefix / "bin" / "python").exists()  # dangling where the system's Python was replaced
        and (wanted.prefix / "bin" / wanted.program).exists()
    )


def _clear(prefix: Path, say: Say) -> None:
    """Remove an unfinished or other environment; never a folder that is no environment."""
    if not prefix.exists() or not any(prefix.iterdir()):
        return
    if not ((prefix / MARKER).exists() or (prefix / "pyvenv.cfg").exists()):
        detail = f"{prefix} holds files and is no Python environment"
        raise Stop(error("DC624", "The folder is taken", detail, "name an empty or new folder with --path"))
    say(f"removing the unfinished or other environment in {prefix}")
    (prefix / MARKER).unlink(missing_ok=True)
    shutil.rmtree(prefix)


def _room(prefix: Path, needed: int, say: Say) -> None:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(prefix.parent).free
    takes = f", the environment takes {show_bytes(needed)}" if needed else ""
    say(f"{show_bytes(free)} free at {prefix.parent}{takes}")
    if free < needed * 1.2:  # while installing, pip holds the largest wheel beside what it unpacked
        detail = f"{show_bytes(free)} free at {prefix.parent}, {show_bytes(needed)} needed and a fifth to work in"
        raise Stop(error("DC625", "Not enough disk for the engine environment", detail, "free some, or use --path"))


@contextmanager
def _alone(prefix: Path) -> Iterator[None]:
    """One installation of an environment at a time; the kernel frees the lock however its holder ends."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(prefix.with_name(f".{prefix.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = error(
                "DC627", "Another installation of this environment is at work", str(prefix), "wait until it is done"
            )
            raise Stop(held, ExitCode.REFUSED) from None
        yield
    finally:
        os.close(descriptor)


def _run(words: list[str], env: Mapping[str, str], say: Say) -> None:
    """Run venv or pip, tell its progress line by line; Stop with its last lines where it fails."""
    clean = {k: v for k, v in env.items() if k not in _IGNORED}
    clean |= _PIP
    last: deque[str] = deque(maxlen=_SHOWN_LINES)
    with subprocess.Popen(words, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:  # fmt: skip
        for line in process.stdout or ():
            last.append(line.rstrip())
            if line.strip().startswith(_TOLD):
                say(line.strip())
    if process.returncode:
        detail = f"{' '.join(words[:5])} … ended with code {process.returncode}; its last lines:\n" + "\n".join(last)
        fix = "mend what pip names and run the same command again: it starts over, with pip's cache"
        raise Stop(error("DC622", "The engine environment could not be made", detail, fix))
