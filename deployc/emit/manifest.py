"""manifest.json: what the bundle is, made of what, and why each flag is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deployc.emit.digest import PENDING
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag, Launch, Recipe
from deployc.types.choices import Choice
from deployc.types.facts import Facts

FORMAT_VERSION = "1.0"


def manifest(
    deploy: Deploy,
    facts: Facts,
    recipe: Recipe | None,
    launches: Sequence[Launch],
    variables: Mapping[str, Choice[str]],
) -> str:
    """The manifest as JSON text, the digest still pending."""
    document = {
        "format_version": FORMAT_VERSION,
        "name": deploy.name,
        "digest": f"sha256:{PENDING}",
        "target": deploy.target.kind,
        "engine": {"name": facts.engine.name, "version": facts.engine.version, "image": facts.engine.image},
        "inputs": _inputs(facts),
        "recipe": None if recipe is None else asdict(recipe),
        "variables": {name: asdict(choice) for name, choice in variables.items()},
        "launches": [_launch(launch) for launch in launches],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _inputs(facts: Facts) -> dict[str, Any]:
    def pinned(source: str, revision: str | None, files: Mapping[str, str]) -> dict[str, Any]:
        return {"source": source, "revision": revision, "files": dict(files)}

    return {
        "model": pinned(facts.model.source, facts.model.revision, facts.model.files),
        "adapters": {a.name: pinned(a.source, a.revision, a.files) for a in facts.adapters},
    }


def _launch(launch: Launch) -> dict[str, Any]:
    return {**asdict(launch), "flags": [_flag(flag) for flag in launch.flags]}


def _flag(flag: EngineFlag) -> dict[str, str | None]:
    return {"name": flag.name, "value": flag.value, "because": flag.because, "reason": flag.reason}
