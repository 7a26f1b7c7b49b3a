"""Drivers, CUDA and the engine's images: `profiles/cuda.json`, with the catalogue's images and the cards' names."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from deployc.data import profiles
from deployc.facts import gpu_profile
from deployc.facts.codec import decode
from deployc.facts.engine import versions
from deployc.types.drivers import Drivers


@cache
def drivers() -> Drivers:
    """All of it; an unreadable file is a broken installation."""
    read: dict[str, Any] = json.loads((profiles() / "cuda.json").read_bytes())
    known = gpu_profile.names()
    made = {
        "by_cuda": read["drivers"]["by_cuda"],
        "by_major": read["minor"]["by_major"],
        "images": read["images"],
        "variants": read["variants"],
        "geforce": [name for name, called in known.items() if any("GeForce" in one for one in called["nvml"])],
    }
    return decode(Drivers, made | {"engine_images": _engine_images()})


def _engine_images() -> list[list[str]]:
    """Each CUDA that images were of, with the last version that had it."""
    known = versions()
    entries = json.loads((profiles() / "engines" / "vllm" / "behaviour.json").read_bytes())["cuda"]
    begins = [known.index(entry[0]) for entry in entries] + [len(known)]
    return [[known[end - 1], entry[1]] for entry, end in zip(entries, begins[1:], strict=True) if entry[1] is not None]
