"""manifest.json: what the bundle is, made of what, and why each flag is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from deployc.emit.shipment import Shipment
from deployc.types.bundle import EngineFlag, Launch
from deployc.types.facts import Facts

FORMAT_VERSION = "1.0"


def inputs(facts: Facts) -> dict[str, Any]:
    """Model and adapters with what pins their content."""

    def pinned(source: str, revision: str | None, files: Mapping[str, str]) -> dict[str, Any]:
        return {"source": source, "revision": revision, "files": dict(files)}

    return {
        "model": pinned(facts.model.source, facts.model.revision, facts.model.files),
        "adapters": {a.name: pinned(a.source, a.revision, a.files) for a in facts.adapters},
    }


def manifest(shipment: Shipment, digest: str) -> str:
    """The manifest as JSON text; `digest` is the bundle's, 64 hex digits."""
    document = {
        "format_version": FORMAT_VERSION,
        "name": shipment.name,
        "digest": f"sha256:{digest}",
        "target": shipment.target,
        "engine": {"name": shipment.engine, "version": shipment.version, "image": shipment.image},
        "inputs": shipment.inputs,
        "recipe": None if shipment.recipe is None else asdict(shipment.recipe),
        "variables": {name: asdict(choice) for name, choice in shipment.variables.items()},
        "launches": [_launch(launch) for launch in shipment.launches],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _launch(launch: Launch) -> dict[str, Any]:
    return {**asdict(launch), "flags": [_flag(flag) for flag in launch.flags]}


def _flag(flag: EngineFlag) -> dict[str, str | None]:
    return {"name": flag.name, "value": flag.value, "because": flag.because, "reason": flag.reason}
