"""Reads profiles/engines/formats.json: what a version of the engine does with formats of weights."""

from __future__ import annotations

import json
from typing import get_args

from deployc.data import profiles
from deployc.facts.codec import decode
from deployc.facts.engine_memory import held
from deployc.types.formats import Formats, Method

FILE = "formats.json"


def formats(version: str) -> Formats:
    """As of `version`; an unreadable file is a broken installation."""
    read = json.loads((profiles() / "engines" / FILE).read_bytes())
    values, kernels = held(FILE, version), read["kernels"]
    lists = {method: [kernels[name] for name in values.pop(method)] for method in get_args(Method)}
    padded = (e["since"] for e in read["behaviours"]["packed"] if any(kernels[name]["pads"] for name in e["value"]))
    return decode(Formats, values | {"kernels": lists, "pads_since": next(padded, "")})
