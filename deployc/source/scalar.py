"""The type of a plain scalar by YAML 1.2's core schema (yaml.org/spec/1.2.2, section 10.3.2), and nothing more.

So `no` is a string, `010` is ten, a date is a string.
"""

from __future__ import annotations

import re
from typing import Any

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"(?:0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
LONGEST_NUMBER = 64
"""Digits beyond which a number is not taken as one: no setting needs them, and huge ones are slow to convert."""


def resolved(text: str) -> Any:
    """The value of a plain scalar; raises ValueError for .inf, .nan and absurdly long numbers."""
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _SPECIAL.match(text):
        raise ValueError("is not a finite number")
    if len(text) > LONGEST_NUMBER and (_INT.match(text) or _FLOAT.match(text)):
        raise ValueError(f"is a number of more than {LONGEST_NUMBER} characters")
    if _INT.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise ValueError("is not a finite number")
        return value
    return text
