"""What COMPILE makes: files as text, the launch of the engine, and one digest over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Recipe:
    """What BUILD makes of which inputs. `key` names the artifact in the store: sha256 of all of it, 64 hex digits."""

    key: str
    model_source: str
    model_hub: str
    model_revision: str | None
    model_files: Mapping[str, str]
    adapters: tuple[tuple[str, str, str | None, float], ...]  # name, source, revision, weight
    adapter_files: Mapping[str, str]
    weights: str  # "none" | "int8"
    dtype: str
    ignore: tuple[str, ...]
    assume: Mapping[str, Any] = field(default_factory=dict)  # of `--assume`: dotted key of config.json -> value


@dataclass(frozen=True, slots=True)
class EngineFlag:
    """One flag of the launch command, `name` without dashes. `because` as in the plan document.

    `value` is for people and for comparing two launches: None = a bare switch, "false" = switched off by its
    `--no-` form, several values one space apart. `argv` is what stands on the command line.
    """

    name: str
    value: str | None
    because: str
    reason: str = ""
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """How one engine is started. `argv` may hold placeholders `${DEPLOYC_…}`, each a whole argument or a path prefix.

    `argv[0]` is a program of the engine environment ("vllm", "python"), found there by whoever starts it.
    `paths` maps a placeholder's name to what a target puts there, "store:<key>" (an artifact), "folder:<path>" or
    "file:<path>" (relative to the deploy.yaml, or absolute): a mount in a container, the absolute path for a process.
    The bundle and its digest are the same on every machine.
    `secrets` maps an environment variable of the engine to its reference ("env:NAME" or "file:PATH"): never a value.
    `devices` are the GPUs of this engine, by index or UUID; empty on a CPU. `bind` and `port` are where people reach
    it; a container listens on its own address inside.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    paths: Mapping[str, str]
    flags: tuple[EngineFlag, ...]
    served_name: str
    port: int
    bind: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """`files` path -> text; `digest` = "sha256:…" over files, launches and recipe; the same on every machine."""

    name: str
    digest: str
    files: Mapping[str, str]
    launches: tuple[Launch, ...]  # one a replica
    recipe: Recipe | None
    target: Literal["process", "docker", "compose", "systemd"]
