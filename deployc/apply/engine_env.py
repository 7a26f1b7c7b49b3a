"""Engine environments: where they lie, which engine is in one, what its command line knows; nothing is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from deployc import files
from deployc.diagnostics import Report, error
from deployc.spec.deploy import Deploy

MARKER = "deployc-engine.json"
"""Written last by the installation: an environment of ours without it is incomplete."""


def data_home(env: Mapping[str, str]) -> Path:
    """$XDG_DATA_HOME, else ~/.local/share; a relative XDG_DATA_HOME is ignored, as XDG says."""
    home = Path(env.get("XDG_DATA_HOME", ""))
    return home if home.is_absolute() else files.home(env) / ".local" / "share"


def environment_path(version: str, cpu: bool, env: Mapping[str, str]) -> Path:
    """`$XDG_DATA_HOME/deployc/engines/vllm-<version>[-cpu]`."""
    return data_home(env) / "deployc" / "engines" / f"vllm-{version}{'-cpu' if cpu else ''}"


def on_cpu(deploy: Deploy) -> bool:
    """Whether the deployment's engine runs on the CPU."""
    return deploy.hardware.gpu == "cpu"


def locate(deploy: Deploy, folder: Path, env: Mapping[str, str]) -> tuple[Path | None, Report]:
    """The prefix of the environment that starts this deployment's engine, or why there is none.

    It is that of `engine.python` (relative to the deploy.yaml's folder), else the installed one of `engine.version`.
    """
    report = Report()
    wanted, at = deploy.engine.version, deploy.at("engine.python")
    install = f"deployc engine install --version {wanted}{' --cpu' if on_cpu(deploy) else ''}"
    if deploy.engine.python != "auto":
        interpreter = files.beside(folder, deploy.engine.python)
        prefix, complete = interpreter.parent.parent, os.access(interpreter, os.X_OK)
        missing = f"engine.python: there is no {interpreter} that this user may run"
    else:
        prefix = environment_path(wanted, on_cpu(deploy), env)
        complete, missing = os.access(prefix / MARKER, os.R_OK), f"there is no finished environment at {prefix}"
    if not complete:
        fix = f"{install}, or name another interpreter in engine.python"
        report.add(error("DC620", "The engine environment is not there", missing, fix, at))
        return None, report
    found = installed_version(prefix)
    if found is None or not os.access(prefix / "bin" / "vllm", os.X_OK):
        detail = f"no vllm is installed below {prefix} (looked for its metadata and for bin/vllm, without starting it)"
        report.add(error("DC620", "The engine environment is not there", detail, install, at))
    elif found.split("+")[0] != wanted:
        detail = f"engine.version is {wanted}, {prefix} holds vllm {found}: flags and memory differ between versions"
        fix = f"{install}, or set engine.version to {found.split('+')[0]} and plan again"
        report.add(
            error("DC621", "The engine environment holds another version", detail, fix, deploy.at("engine.version"))
        )
    return (None if report.errors else prefix), report


def site_packages(prefix: Path) -> list[Path]:
    """The folders that an environment's packages lie in: venv, conda, Debian. lib64 is often a link to lib."""
    found = (p.resolve() for name in ("site-packages", "dist-packages") for p in prefix.glob(f"lib*/python3*/{name}"))
    return sorted(set(found))


def installed_version(prefix: Path, name: str = "vllm") -> str | None:
    """The version of a distribution, from the name of its .dist-info folder; None where it is not installed."""
    pattern = re.compile(rf"{re.escape(name)}-(?P<version>[^-]+)\.dist-info", re.IGNORECASE)
    for folder in site_packages(prefix):
        for entry in folder.iterdir():
            if (match := pattern.fullmatch(entry.name)) and (entry / "METADATA").exists():
                return match["version"]
    return None


def unknown_flags(prefix: Path, names: Iterable[str]) -> list[str]:
    """Those of the flags (without dashes) that this engine's own argument parser does not name.

    Read as text in vllm/engine/arg_utils.py and the entrypoints' cli_args.py, where every option is either a literal
    "--max-model-len" or a field `max_model_len` of the argument classes (0.25.1, 0.32.0). [] where they are not found.
    """
    sources = [s for folder in site_packages(prefix) for s in _parsers(folder / "vllm")]
    if not sources:
        return []
    words = set(
        re.findall(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*", "\n".join(s.read_text(errors="replace") for s in sources))
    )
    known = {word.replace("_", "-") for word in words}

    def accepted(name: str) -> bool:
        plain = name.split(".")[0].replace("_", "-")
        return plain in known or plain.removeprefix("no-") in known

    return [name for name in names if not accepted(name)]


def _parsers(package: Path) -> list[Path]:
    return [*package.glob("engine/arg_utils.py"), *package.glob("entrypoints/**/cli_args.py")]
