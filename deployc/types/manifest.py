"""What BUILD made: the artifact in the store and the manifest that says of what and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from deployc.diagnostics import Diagnostic
from deployc.types.quality import Quality


@dataclass(frozen=True, slots=True)
class Content:
    """One file: bytes and the sha256 of its whole content, 64 hex digits."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`manifest.json` of an artifact. The same recipe, tool, torch and threads give the same `files`.

    `inputs` are named "model/<file>" and "adapters/<name>/<file>". `seconds` says how long each phase took.
    """

    format_version: str
    key: str
    recipe: Mapping[str, Any]
    inputs: Mapping[str, Content]
    files: Mapping[str, Content]
    tool: str
    torch: str
    threads: int
    built_at: str  # ISO 8601 UTC
    seconds: Mapping[str, float]
    versions: Mapping[str, str] = field(default_factory=dict)  # of the libraries that calibrated it
    quality: Quality | None = None  # where it was measured

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(content.bytes for content in self.files.values())


@dataclass(frozen=True, slots=True)
class Artifact:
    """A finished artifact: `path` is the folder an engine loads. `notes` are warnings of the build that made it."""

    path: Path
    manifest: Manifest
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is. `done` and `total` in `unit`, `total` 0 where it is not known; `item` a file or tensor."""

    phase: Literal["wait", "download", "check", "merge", "write", "calibrate", "measure"]
    done: int = 0
    total: int = 0
    item: str = ""
    unit: Literal["bytes", "layers", "tokens"] = "bytes"
