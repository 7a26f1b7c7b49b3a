"""The 16-bit model that a quantized one was made of, guessed by its name."""

from __future__ import annotations

import re

_ENDS = re.compile(
    r"[-_.](?:unsloth-bnb-4bit|bnb-[48]bit|[48]bit|awq(?:-int4|-marlin)?|gptq(?:-int[2348]|-[48]bit)?|gptqmodel.*|autoround.*"
    r"|fp8(?:-dynamic|-block|-kv)*|nvfp4.*|mxfp4.*|quantized\.w\d+a\d+|w\d+a\d+.*|int[48](?:-.*)?|gguf|exl[23].*|hqq.*)$",
    re.IGNORECASE,
)
"""What publishers add to a model's name: of bitsandbytes, Unsloth, AWQ, GPTQ, Neural Magic, llama.cpp and others."""


def plain_name(*names: str) -> str | None:
    """The first name without such an end, of those that have one; None where none has."""
    for written in names:
        name = written.rstrip("/")
        plain = _ENDS.sub("", name)
        while plain != name and (again := _ENDS.sub("", plain)) != plain:
            plain = again
        if plain and plain != name and not plain.endswith("/"):
            return plain
    return None


def guess(*names: str) -> str:
    """ " (by its name …)" for a diagnostic's fix; "" where nothing can be guessed."""
    plain = plain_name(*names)
    return "" if plain is None else f" (by its name {plain}; a guess)"
