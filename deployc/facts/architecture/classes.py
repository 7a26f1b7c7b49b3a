"""What the configuration classes of transformers document of absent keys: profiles/models/classes.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from deployc.data import profiles


def defaults(model_type: str) -> Mapping[str, Any]:
    """Defaults by key of the class of this model_type; empty where transformers has no such class."""
    return _classes().get(model_type, {})


@cache
def _classes() -> Mapping[str, Mapping[str, Any]]:
    text = (profiles() / "models" / "classes.json").read_text(encoding="utf-8")
    classes: Mapping[str, Mapping[str, Any]] = json.loads(text)["classes"]
    return classes
