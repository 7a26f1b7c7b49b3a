"""sha256 of canonical JSON: the same on every machine and Python version."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces, non-ASCII characters as they are; NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(value: Any) -> str:
    """64 hex digits over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
