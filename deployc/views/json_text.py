"""One JSON document as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def json_text(document: Mapping[str, Any]) -> str:
    """Indented JSON, keys in the document's order, non-ASCII characters as they are; NaN and infinity are refused."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
