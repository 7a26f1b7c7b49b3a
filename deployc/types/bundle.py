"""What COMPILE makes: files as text, the launch of the engine, and one digest over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of a JSON Lines file with `text` or `messages`: how many at most, and tokens of each at most.

    `path` as in deploy.yaml, relative to its folder; `digest` "sha256:…" of the whole file, "" where it was not read.
    """

    path: str
    digest: str
    samples: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The text that quality is measured on, and the limits that the artifact must keep; None = no such limit."""

    text: Text
    max_perplexity_increase: float | None = None  # 0.03 = 3 %
    max_mean_kl: float | None = None  # nats a token
    min_top1_agreement: float | None = None  # share of tokens
    min_valid_json: float | None = None  # share of the answers that should be JSON


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
    weights: str  # "none" or a key of cost.weights.formats.SCHEMES
    dtype: str
    ignore: tuple[str, ...]
    assume: Mapping[str, Any] = field(default_factory=dict)  # of `--assume`: dotted key of config.json -> value
    group_size: int = 0  # inputs that share a scale in 4-bit weights; 0 in other formats
    calibration: Text | None = None  # what weights are calibrated with; None where they need no data
    smoothquant: float = 0.0  # strength with which activations' outliers are moved into int8 weights; 0 = not
    template: tuple[str, str] | None = None  # the one that is served in place of the model's: path or text, digest
    quality: Measurement | None = None  # how quality is measured; no part of the key: the bytes do not depend on it


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
    downloads: int = 0  # bytes that the engine itself fetches from a hub at its first start
