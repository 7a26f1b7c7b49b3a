"""What COMPILE makes: files as text, the launch of the engine, and one digest over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


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


@dataclass(frozen=True, slots=True)
class EngineFlag:
    """One flag of the launch command. `value` None = a bare switch. `because` as in the plan document."""

    name: str
    value: str | None
    because: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """How one engine is started. `argv` may hold placeholders `${DEPLOYC_…}`, each a whole argument or a path prefix.

    `paths` maps a placeholder's name to a path relative to the deploy.yaml, or to a store key: what a target puts
    there differs (a mount in a container, the absolute path for a process), the bundle and its digest do not.
    `secrets` maps an environment variable of the engine to its reference ("env:NAME" or "file:PATH"): never a value.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    paths: Mapping[str, str]
    flags: tuple[EngineFlag, ...]
    served_name: str
    port: int
    bind: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """`files` path -> text; `digest` = sha256 over files, launches and recipe; the same on every machine."""

    name: str
    digest: str
    files: Mapping[str, str]
    launches: tuple[Launch, ...]  # one a replica
    recipe: Recipe | None
    target: Literal["process", "docker", "compose", "systemd"]
