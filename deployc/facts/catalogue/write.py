"""A catalogue file: what was read of one version, one flag a line, so that a review sees what a version changed."""

from __future__ import annotations

import json
from typing import Any

from deployc.facts.catalogue.behaviour import behaviours
from deployc.facts.catalogue.parser import flags
from deployc.facts.catalogue.source import Tree
from deployc.facts.codec import encode

FORMAT = 1


def render(version: str, tree: Tree) -> str:
    """The text of `profiles/engines/vllm-<version>.json`. Raises Unreadable where the sources cannot be read."""
    read = behaviours(tree)
    catalogue: dict[str, Any] = {
        "format": FORMAT,
        "name": "vllm",
        "version": version,
        "source": f"vllm {version}, its source package, read by python -m deployc.facts.catalogue",
        "behaviour": {name: {"value": value, "source": place} for name, (value, place) in sorted(read.items())},
        "flags": [{k: v for k, v in encode(flag).items()} for flag in flags(tree).values()],
    }
    parts = []
    for key, value in catalogue.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items())
            parts.append(f"  {json.dumps(key)}: {{\n{lines}\n  }}")
        elif isinstance(value, list):
            lines = ",\n".join(f"    {json.dumps(entry)}" for entry in value)
            parts.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
