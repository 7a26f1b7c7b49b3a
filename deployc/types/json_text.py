"""JSON in a text that somebody wrote by hand: read without trusting how deep it goes."""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 100
"""Levels of maps and lists: more than any setting has, and few enough for everything that walks through them."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def loads(text: str) -> Any:
    """The value; ValueError where the text is no JSON, or has more than DEEPEST levels."""
    level = 0
    for character in _STRING.sub("", text):
        level += (character in "[{") - (character in "]}")
        if level > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels")
    return json.loads(text)
