"""One file of profiles/engines/: tool data, in no lockfile; an unreadable one is a broken installation."""

from __future__ import annotations

import json
from typing import Any

from deployc.data import profiles


def engine_table(file: str) -> dict[str, Any]:
    """As it stands there, by its name below that folder. Raises OSError, ValueError."""
    read: dict[str, Any] = json.loads((profiles() / "engines" / file).read_bytes())
    return read
