"""All that the bundle's files are made from, as plain values; its digest is the bundle's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from deployc import data
from deployc.emit.digest import sha256
from deployc.emit.timing import Timing
from deployc.types.bundle import Launch, Recipe
from deployc.types.choices import Choice

FILES_FORMAT = 2
"""Raised when `files.py` makes other text of the same shipment and the same templates."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """`host` and `container` are the same replicas, outside and inside a container.

    `program` are the words of the command line before the flags; `state` is the folder that a unit runs from.
    """

    name: str
    target: Literal["process", "docker", "compose", "systemd"]
    engine: str
    version: str
    image: str
    bake: bool
    state: str
    program: tuple[str, ...]
    host: tuple[Launch, ...]
    container: tuple[Launch, ...]
    timing: Timing
    recipe: Recipe | None
    variables: Mapping[str, Choice[str]]
    inputs: Mapping[str, Any]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The replicas as this target starts them."""
        return self.container if self.target in ("docker", "compose") else self.host


def digest(shipment: Shipment) -> str:
    """64 hex digits over the shipment and the templates: whatever could change a file changes it."""
    templates = {path.name: path.read_text(encoding="utf-8") for path in sorted(data.templates().glob("*.j2"))}
    return sha256({"format": FILES_FORMAT, "templates": templates, "shipment": asdict(shipment)})
