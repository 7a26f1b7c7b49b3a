"""The quantizer's environment: where it lies, whether it is there, and which packages make it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc import data
from deployc.apply.engine_env import MARKER, data_home
from deployc.diagnostics import Stop, error

NAME = "llmcompressor"
"""The distribution whose version is the environment's."""


def default_version() -> str:
    """The version of llm-compressor that artifacts are made with."""
    return str(_profile()["default"])


def pins(version: str) -> Mapping[str, Any]:
    """What profiles/engines/llmcompressor.yaml says of a version; Stop DC623 where it says nothing."""
    versions: Mapping[str, Mapping[str, Any]] = _profile()["versions"]
    if version not in versions:
        detail = f"{NAME} {version}: known are {', '.join(versions)}"
        raise Stop(error("DC623", "The packages of this version are not known", detail, f"--version {[*versions][-1]}"))
    return versions[version]


def environment_path(version: str, env: Mapping[str, str]) -> Path:
    """`$XDG_DATA_HOME/deployc/quantizers/llmcompressor-<version>`."""
    return data_home(env) / "deployc" / "quantizers" / f"{NAME}-{version}"


def locate_quantizer(env: Mapping[str, str]) -> Path | None:
    """The interpreter of the finished environment that this host has; None where it has none (DC260 is the build's)."""
    prefix = environment_path(default_version(), env)
    python = prefix / "bin" / "python"
    return python if os.access(prefix / MARKER, os.R_OK) and os.access(python, os.X_OK) else None


def _profile() -> Mapping[str, Any]:
    from ruamel.yaml import YAML

    profile: Mapping[str, Any] = YAML(typ="safe").load(data.profiles() / "engines" / "llmcompressor.yaml")
    return profile
